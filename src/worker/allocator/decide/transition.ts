import type { AuditContext } from "../../../shared/actor.ts";
import type { BadgeState } from "../../../shared/badge-lifecycle/states.ts";
import type { SubscribableEvent } from "../../../shared/events.ts";
import { REBIND_WINDOW_HOURS } from "../../../shared/limits/key-limits.ts";
import { HOUR_MILLISECONDS, isoTime } from "../../../shared/time.ts";
import type { IssuedBadge } from "../../storage/rows.ts";
import { type Result, refused, type TransitionCommand } from "../commands.ts";
import type { Transaction } from "../transaction.ts";
import { addBadgeEvent } from "./events.ts";
import { type Decision, decideState, type Transition } from "./next-state.ts";

/** A transition of a badge that a caller asks for (contract sections 12, 15 and 24). */
export function decideTransition(transaction: Transaction, audit: AuditContext, command: TransitionCommand): Result {
  const { number, transition, ifChange, ownedBy } = command;
  const badge = transaction.tables.issued(number);
  if (!badge || (ownedBy !== null && badge.userId !== ownedBy)) return refused("UNKNOWN_BADGE");
  if (ifChange !== null && !ifChange.includes(badge.change)) return refused("CHANGED_BADGE");
  const decision = decideState(badge, transition, transaction.now);
  switch (decision.kind) {
    case "refused":
      return refused("ENDED_BADGE");
    case "invalid":
      return refused("INVALID_STARTSAT");
    case "unchanged":
      return { kind: "badge", badge: transition.kind === "rebind" ? openRebinding(transaction, audit, badge) : badge };
    case "changed":
      return { kind: "badge", badge: record(transaction, audit, { badge, transition, decision }) };
  }
}

/** Applies a transition if it changes the badge. @returns the badge as it is then */
export function applyTransition(
  transaction: Transaction,
  audit: AuditContext,
  badge: IssuedBadge,
  transition: Transition,
): IssuedBadge {
  const decision = decideState(badge, transition, transaction.now);
  return decision.kind === "changed" ? record(transaction, audit, { badge, transition, decision }) : badge;
}

/** Stores the badge as it is after the transition, with its history and its webhook event. */
function record(
  transaction: Transaction,
  audit: AuditContext,
  change: { badge: IssuedBadge; transition: Transition; decision: Extract<Decision, { kind: "changed" }> },
): IssuedBadge {
  const { badge, transition, decision } = change;
  const changed = transaction.changeBadge(badge, { ...badge, ...decision.next });
  const about = { badge: badge.number, userId: badge.userId };
  if (transition.kind === "reschedule") {
    const { startsAt, expiresAt } = changed;
    const detail = { startsAt: isoTime(startsAt), expiresAt: isoTime(expiresAt) };
    transaction.addHistory("badge:rescheduled", audit, { ...about, detail });
    moveVisit(transaction, changed);
  }
  if (decision.becomes !== null) {
    const event = EVENT_OF_STATE[decision.becomes];
    addBadgeEvent(transaction, event, changed);
    transaction.addHistory(event, audit, about);
  }
  return changed;
}

/** Lists of visits use the times of the invitation that the badge was claimed from (contract section 19). */
function moveVisit(transaction: Transaction, { number, invitation: digest, startsAt, expiresAt }: IssuedBadge): void {
  const invitation = digest === null ? undefined : transaction.tables.invitation(digest);
  // If an Idempotency-Key is used again after its first invitation was deleted, the same token gets another number.
  if (invitation?.number !== number) return;
  const moved = { ...invitation, badgeStartsAtTime: startsAt, badgeExpiresAtTime: expiresAt };
  transaction.updateInvitation(invitation, moved);
}

/**
 * For 24 hours from now, the first login of the badge's user device with another key binds the badge to it (contract section
 * 15). Nothing that callers see changes yet; when it is repeated, the hours start again.
 */
function openRebinding(transaction: Transaction, audit: AuditContext, badge: IssuedBadge): IssuedBadge {
  const opened = { ...badge, rebindUntil: transaction.now + REBIND_WINDOW_HOURS * HOUR_MILLISECONDS };
  transaction.keepBadge(badge, opened);
  transaction.addHistory("badge:rebound", audit, { badge: badge.number, userId: badge.userId });
  return opened;
}

/** The event that reports the new state that callers see. */
const EVENT_OF_STATE = {
  active: "badge:resumed",
  suspended: "badge:suspended",
  revoked: "badge:revoked",
  expired: "badge:expired",
  replaced: "badge:replaced",
} as const satisfies Record<BadgeState, SubscribableEvent>;
