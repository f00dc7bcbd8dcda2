import type { Origin } from "../../../shared/actor.ts";
import { stateAt } from "../../../shared/badge-life/states.ts";
import { mayBind, mayUse } from "../../badges/binding.ts";
import { refusalOfState } from "../../badges/refusal.ts";
import { type BadgeCommand, type Outcome, refused } from "../commands.ts";
import { decideClaim } from "./claim.ts";
import type { Draft } from "./draft.ts";
import { tellOfNewBadge } from "./events.ts";
import { countNewBadge, hasFresh, takeNumber } from "./numbers.ts";
import type { IssuedBadge } from "./rows.ts";

/** `POST /v1/badge` (contract sections 2, 12 and 15): the badge of a user device, a new one, or an invitation's. */
export function decideBadge(draft: Draft, origin: Origin, command: BadgeCommand): Outcome {
  if (command.invitation !== null) return decideClaim(draft, origin, command, command.invitation);
  if (!command.isVerified) return refused("INVALID_USERTOKEN");
  const own = draft.badgeOf(command.device, command.userId);
  return own ? logIn(draft, command, own) : issue(draft, command);
}

/**
 * The badge becomes its device's current one, and new metadata replaces the stored one. While the badge may be bound to
 * another key, a login with that key binds it.
 */
export function logIn(draft: Draft, command: BadgeCommand, own: IssuedBadge): Outcome {
  const { device, metadata, keyThumbprint, rules } = command;
  const binds = mayBind(own, keyThumbprint, rules, draft.now);
  if (!binds && !mayUse(own, keyThumbprint, rules)) return refused("INVALID_PROOF");
  const code = refusalOfState(stateAt(own, draft.now));
  if (code !== null) return refused(code);
  const isCurrent = own.turn === draft.turns.get(device);
  const loggedIn = {
    ...own,
    turn: isCurrent ? own.turn : draft.nextTurn(device),
    metadata: metadata ?? own.metadata,
    ...(binds && { keyThumbprint, rebindUntil: null }),
  };
  if (binds || loggedIn.metadata !== own.metadata) draft.change(loggedIn);
  else if (!isCurrent) draft.keep(loggedIn);
  return { kind: "existing", number: own.number, keyThumbprint: loggedIn.keyThumbprint };
}

function issue(draft: Draft, command: BadgeCommand): Outcome {
  const { device, userId, metadata, keyThumbprint, rules } = command;
  if (draft.isBlocked(userId)) return refused("BLOCKED_USER");
  if (hasFresh(draft.position.fresh, rules.range) && !countNewBadge(draft, rules)) return refused("RATE_LIMITED");
  const number = takeNumber(draft, rules);
  if (number === null) return refused("NUMBERS_EXHAUSTED");
  const badge = { number, userId, metadata, keyThumbprint, name: null, startsAt: null };
  issueNumber(draft, { ...badge, device, expiresAt: null, invitation: null }, command, tellOfNewBadge(draft, badge));
  return { kind: "created", number, keyThumbprint };
}

/** Makes a number the badge of a user device, and the device's current one. */
export function issueNumber(
  draft: Draft,
  badge: Pick<
    IssuedBadge,
    "number" | "device" | "userId" | "metadata" | "keyThumbprint" | "name" | "startsAt" | "expiresAt" | "invitation"
  >,
  { rules }: BadgeCommand,
  eventId: string,
): void {
  draft.position.lastPosition++;
  draft.change({
    ...badge,
    eventId,
    signingKeyId: rules.signingKey.id,
    position: draft.position.lastPosition,
    turn: draft.nextTurn(badge.device),
    issuedAt: draft.now,
    state: "active",
    endedAt: null,
    retiredAt: null,
    rebindUntil: null,
    change: 0,
    changedAt: 0,
    statusChange: null,
  });
  draft.useSigningKey(rules.signingKey);
}
