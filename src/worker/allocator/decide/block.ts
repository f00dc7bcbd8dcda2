import type { AuditContext } from "../../../shared/actor.ts";
import { MAX_USER_BADGES } from "../../../shared/limits/allocator-limits.ts";
import type { BlockCommand, Result } from "../commands.ts";
import type { Transaction } from "../transaction.ts";
import { applyTransition } from "./transition.ts";

/** Blocks a user and revokes all of the user's badges (contract section 12). It revokes 10,000 badges at most; a repeated block revokes the rest. */
export function decideBlock(
  transaction: Transaction,
  audit: AuditContext,
  { userId, userDigest }: BlockCommand,
): Result {
  const { tables, now } = transaction;
  const isNew = !tables.isBlocked(userId, userDigest);
  if (isNew) transaction.addHistory("user:blocked", audit, { userId });
  const numbers = tables.badgesOfUser(userId, "revocable", MAX_USER_BADGES).map((badge) => {
    transaction.allowSplit();
    return applyTransition(transaction, audit, badge, { kind: "revoke" }).number;
  });
  // Last: while D1 has only a part of this, nobody sees a blocked user with badges.
  if (isNew) transaction.insertBlock({ userId, blockedAt: now, userDigest: null });
  return { kind: "user", userId, numbers };
}

/** Lifts a block, even of a user who was erased. Revoked badges stay revoked. */
export function decideUnblock(
  transaction: Transaction,
  audit: AuditContext,
  { userId, userDigest }: BlockCommand,
): Result {
  const block = transaction.tables.block(userId, userDigest);
  if (block) {
    transaction.deleteBlock(block);
    transaction.addHistory("user:unblocked", audit, { userId: block.userId });
  }
  return { kind: "user", userId, numbers: [] };
}
