import { BY_CLOCK } from "../../../shared/actor.ts";
import { DUE_CHUNK_ROWS } from "../../../shared/limits/allocator-limits.ts";
import type { Result } from "../commands.ts";
import type { Transaction } from "../transaction.ts";
import { expireInvitations } from "./end-invitation.ts";
import { applyTransition } from "./transition.ts";

/** Records the ends of badges and invitations that the clock has brought. */
export function decideDue(transaction: Transaction): Result {
  const { tables, now } = transaction;
  const badges = tables.endedBadges(now, DUE_CHUNK_ROWS);
  for (const badge of badges) {
    applyTransition(transaction, BY_CLOCK, badge, { kind: "expire" });
    transaction.allowSplit();
  }
  const expired = expireInvitations(transaction, DUE_CHUNK_ROWS);
  return { kind: "recorded", isDone: badges.length < DUE_CHUNK_ROWS && expired < DUE_CHUNK_ROWS };
}
