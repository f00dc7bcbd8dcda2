import type { AuditContext } from "../../../shared/actor.ts";
import { type BadgeCommand, type Result, refused } from "../commands.ts";
import type { Transaction } from "../transaction.ts";
import { decideClaim } from "./claim.ts";
import { addNewBadgeEvent } from "./events.ts";
import { issueNumber } from "./issue-number.ts";
import { logIn } from "./log-in.ts";
import { takeLimitedNumber } from "./take-number.ts";

/** `POST /v1/badge` (contract sections 2, 12 and 15): the badge of a user device, a new one, or an invitation's. */
export function decideBadge(transaction: Transaction, audit: AuditContext, command: BadgeCommand): Result {
  if (command.invitation !== null) return decideClaim(transaction, audit, command, command.invitation);
  if (!command.isVerified) return refused("INVALID_USERTOKEN");
  const own = transaction.tables.badgeOf(command.device, command.userId);
  return own ? logIn(transaction, command, own) : issue(transaction, command);
}

function issue(transaction: Transaction, command: BadgeCommand): Result {
  const { tables } = transaction;
  const { device, userId, userDigest, metadata, keyThumbprint, rules } = command;
  if (tables.isBlocked(userId, userDigest)) return refused("BLOCKED_USER");
  if (tables.hasAllBadges(userId)) return refused("TOO_MANY_BADGES");
  const number = takeLimitedNumber(transaction, rules);
  if (typeof number === "string") return refused(number);
  const badge = { number, userId, metadata, keyThumbprint, name: null, startsAt: null };
  const eventId = addNewBadgeEvent(transaction, badge);
  issueNumber(transaction, undefined, { ...badge, device, expiresAt: null, invitation: null, eventId }, rules);
  return { kind: "created", number, keyThumbprint };
}
