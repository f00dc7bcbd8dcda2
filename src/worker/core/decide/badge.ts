import type { Origin } from "../../../shared/actor.ts";
import { type BadgeCommand, type Outcome, refused } from "../commands.ts";
import { decideClaim } from "./claim.ts";
import type { Draft } from "./draft.ts";
import { tellOfNewBadge } from "./events.ts";
import { issueNumber } from "./issue-number.ts";
import { logIn } from "./login.ts";
import { countFresh, countNewBadge, takeNumber } from "./numbers.ts";

/** `POST /v1/badge` (contract sections 2, 12 and 15): the badge of a user device, a new one, or an invitation's. */
export function decideBadge(draft: Draft, origin: Origin, command: BadgeCommand): Outcome {
  if (command.invitation !== null) return decideClaim(draft, origin, command, command.invitation);
  if (!command.isVerified) return refused("INVALID_USERTOKEN");
  const own = draft.badgeOf(command.device, command.userId);
  return own ? logIn(draft, command, own) : issue(draft, command);
}

function issue(draft: Draft, command: BadgeCommand): Outcome {
  const { device, userId, metadata, keyThumbprint, rules } = command;
  if (draft.isBlocked(userId)) return refused("BLOCKED_USER");
  if (countFresh(draft.position.fresh, rules.range) > 0 && !countNewBadge(draft, rules)) return refused("RATE_LIMITED");
  const number = takeNumber(draft, rules);
  if (number === null) return refused("NUMBERS_EXHAUSTED");
  const badge = { number, userId, metadata, keyThumbprint, name: null, startsAt: null };
  issueNumber(draft, { ...badge, device, expiresAt: null, invitation: null }, command, tellOfNewBadge(draft, badge));
  return { kind: "created", number, keyThumbprint };
}
