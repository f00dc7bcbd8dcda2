import { stateAt } from "../../../shared/badge-lifecycle/states.ts";
import { viewBadge } from "../../../shared/badge-lifecycle/view.ts";
import type { EventName } from "../../../shared/events.ts";
import { isoTime } from "../../../shared/time.ts";
import type { InvitationRow, IssuedBadge } from "../../storage/rows.ts";
import { badgeCreatedPayload } from "../../webhooks/badge-created-payload.ts";
import type { Transaction } from "../transaction.ts";

/** Records a webhook event about a badge as it is now (contract section 18). */
export function addBadgeEvent(transaction: Transaction, event: EventName, badge: IssuedBadge): void {
  const state = stateAt(badge, transaction.now);
  add(transaction, event, badge.number, { ...viewBadge({ ...badge, state }), change: badge.change });
}

/** Records that a badge was issued (contract section 8). @returns the event's ID */
export function addNewBadgeEvent(
  transaction: Transaction,
  badge: Pick<IssuedBadge, "number" | "userId" | "metadata" | "keyThumbprint" | "name" | "startsAt">,
  more: { invitationId?: string; replacedNumber?: number | null } = {},
): string {
  return transaction.addEvent("badge:created", badge.number, (eventId) =>
    badgeCreatedPayload({ eventId, createdAt: transaction.now, ...badge, ...more }),
  );
}

/** Records that an invitation ended without a claim (contract section 18). */
export function addInvitationEvent(
  transaction: Transaction,
  event: EventName,
  { number, expiresAt }: InvitationRow,
): void {
  add(transaction, event, number, { id: String(number), expiresAt });
}

/** The body is serialized once: every attempt signs and sends these bytes. */
function add(transaction: Transaction, event: EventName, number: number, data: object): void {
  const createdAt = isoTime(transaction.now);
  transaction.addEvent(event, number, (id) => JSON.stringify({ id, event, createdAt, data }));
}
