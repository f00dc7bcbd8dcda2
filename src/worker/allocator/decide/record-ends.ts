import { BY_CLOCK } from "../../../shared/actor.ts";
import { ENDS_CHUNK_ROWS } from "../../../shared/limits/allocator-limits.ts";
import type { Result } from "../commands.ts";
import type { Transaction } from "../transaction.ts";
import { expireInvitations } from "./end-invitation.ts";
import { applyTransition } from "./transition.ts";

/** Records the expiry of badges and invitations whose end has passed. */
export function decideEnds(transaction: Transaction): Result {
  const { tables, now } = transaction;
  const badges = tables.endedBadges(now, ENDS_CHUNK_ROWS);
  for (const badge of badges) {
    applyTransition(transaction, BY_CLOCK, badge, { kind: "expire" });
    transaction.allowSplit();
  }
  const expired = expireInvitations(transaction, ENDS_CHUNK_ROWS);
  return { kind: "recorded", isDone: badges.length < ENDS_CHUNK_ROWS && expired < ENDS_CHUNK_ROWS };
}
