import { stateAt } from "../../../shared/badge-lifecycle/states.ts";
import { parseMetadata, viewBadge } from "../../../shared/badge-lifecycle/view.ts";
import type { EventName } from "../../../shared/events.ts";
import { isoTime } from "../../../shared/time.ts";
import type { InvitationRow, IssuedBadge } from "../../storage/rows.ts";
import type { Transaction } from "../transaction.ts";

/** Records a webhook event about a badge as it is now (contract section 18). */
export function addBadgeEvent(transaction: Transaction, event: EventName, badge: IssuedBadge): void {
  const state = stateAt(badge, transaction.now);
  transaction.addEvent(event, { ...viewBadge({ ...badge, state }), change: badge.change });
}

/**
 * Records that a badge was issued (contract section 8).
 *
 * @param claimed the invitation's token, and the number that the invitation's number replaced, if any
 * @returns the event's ID
 */
export function addNewBadgeEvent(
  transaction: Transaction,
  badge: Pick<IssuedBadge, "number" | "userId" | "metadata" | "keyThumbprint" | "name" | "startsAt">,
  claimed: { invitationId: string; replacedNumber: number | null } | null = null,
): string {
  const { number, userId, metadata, keyThumbprint, name, startsAt } = badge;
  return transaction.addEvent("badge:created", {
    id: String(number),
    userId,
    metadata: parseMetadata(metadata),
    ...(name !== null && { name }),
    ...(startsAt !== null && { startsAt: isoTime(startsAt) }),
    ...(keyThumbprint !== null && { keyThumbprint }),
    ...(claimed && { invitationId: claimed.invitationId }),
    ...(claimed && claimed.replacedNumber !== null && { replacedBadgeId: String(claimed.replacedNumber) }),
  });
}

/** Records that an invitation ended without a claim (contract section 18). */
export function addInvitationEvent(
  transaction: Transaction,
  event: EventName,
  { number, expiresAt }: InvitationRow,
): void {
  transaction.addEvent(event, { id: String(number), expiresAt });
}
