import { type AuditContext, BY_CLOCK } from "../../../shared/actor.ts";
import type { InvitationRow } from "../../storage/rows.ts";
import type { Transaction } from "../transaction.ts";
import { addInvitationEvent } from "./events.ts";

/** Ends a pending invitation; its number is available again (contract section 5). */
export function endInvitation(
  transaction: Transaction,
  audit: AuditContext,
  invitation: InvitationRow,
  state: "revoked" | "expired",
): InvitationRow {
  const { tables, now } = transaction;
  const endedAt = state === "expired" ? invitation.expiresAtTime : now;
  const ended = { ...invitation, state, endedAt };
  transaction.updateInvitation(invitation, ended);
  const reserved = tables.badge(invitation.number);
  if (reserved) {
    transaction.deleteBadge(reserved);
    transaction.insertFreed({ number: reserved.number, freedAt: endedAt });
  }
  addInvitationEvent(transaction, `invitation:${state}`, ended);
  transaction.addHistory(`invitation:${state}`, audit, { badge: invitation.number, userId: invitation.userId });
  return ended;
}

/** Ends pending invitations that are past their time. @returns their number */
export function expireInvitations(transaction: Transaction, limit: number): number {
  const ended = transaction.tables.endedInvitations(transaction.now, limit);
  for (const invitation of ended) {
    endInvitation(transaction, BY_CLOCK, invitation, "expired");
    transaction.allowSplit();
  }
  return ended.length;
}
