import { BY_CLOCK, type Origin } from "../../../shared/actor.ts";
import { MAX_GROUP_CHARACTERS, REPEATED_BLOCK_MILLISECONDS } from "../../../shared/limits.ts";
import { isYounger } from "../../../shared/time.ts";
import { type BlockRow, type IssuedBadge, isIssued } from "../../storage/rows.ts";
import type { Outcome } from "../commands.ts";
import type { Draft } from "./draft.ts";
import { takeStep } from "./step.ts";

/** There is more to do than fits into one group: the command is decided again, with the next rows. */
export type Again = { kind: "again" };
export const AGAIN: Again = { kind: "again" };

/** Which of a user's badges a group has read: all up to this position; null: all. */
export type ReadThrough = number | null;

/** The block is finished: it revoked these numbers, and those that D1 already has as revoked by it. */
export interface Revoked {
  kind: "revoked-by";
  block: BlockRow;
  numbers: number[];
}

/**
 * Blocks a user and revokes the badges that were issued before (contract section 12), in chunks: until the last one the block
 * is marked as unfinished, so it is finished whatever happens.
 *
 * @param wasAnswered whether the caller of a block that is finished got its response
 */
export function decideBlock(
  draft: Draft,
  origin: Origin,
  userId: string,
  through: ReadThrough,
  wasAnswered: boolean,
): Outcome | Again | Revoked {
  const known = draft.blocks.get(userId);
  if (known && !known.isRevoking) {
    const isRepeated = !wasAnswered && isYounger(known.blockedAt, draft.now, REPEATED_BLOCK_MILLISECONDS);
    return isRepeated ? { kind: "revoked-by", block: known, numbers: [] } : { kind: "user", userId, numbers: [] };
  }
  const block = known ?? begin(draft, origin, userId);
  const { numbers, isFinished } = revokeChunk(draft, origin, block, through);
  if (!isFinished) return AGAIN;
  return known ? { kind: "revoked-by", block, numbers } : { kind: "user", userId, numbers };
}

function begin(draft: Draft, origin: Origin, userId: string): BlockRow {
  const { lastPosition: throughPosition, lastChange: afterChange } = draft.position;
  draft.note("user:blocked", origin, { userId });
  return { userId, blockedAt: draft.now, isRevoking: true, throughPosition, donePosition: 0, afterChange };
}

/** An unfinished block is finished first, so that what it was to revoke stays revoked. */
export function decideUnblock(draft: Draft, origin: Origin, userId: string, through: ReadThrough): Outcome | Again {
  const block = draft.blocks.get(userId);
  if (block?.isRevoking && !revokeChunk(draft, origin, block, through).isFinished) return AGAIN;
  if (block) {
    draft.blocks.delete(userId);
    draft.note("user:unblocked", origin, { userId });
  }
  return { kind: "user", userId, numbers: [] };
}

/** Goes on with a block whose caller is not waiting any more. */
export function decideFinishBlock(draft: Draft, userId: string, through: ReadThrough): Outcome | Again {
  const block = draft.blocks.get(userId);
  if (block?.isRevoking && !revokeChunk(draft, BY_CLOCK, block, through).isFinished) return AGAIN;
  return { kind: "user", userId, numbers: [] };
}

function revokeChunk(
  draft: Draft,
  origin: Origin,
  block: BlockRow,
  through: ReadThrough,
): { numbers: number[]; isFinished: boolean } {
  const last = Math.min(block.throughPosition, through ?? block.throughPosition);
  const numbers: number[] = [];
  let { donePosition } = block;
  for (const badge of badgesOf(draft, block.userId)) {
    if (badge.position <= donePosition || badge.position > last) continue;
    if (draft.size > MAX_GROUP_CHARACTERS) {
      draft.blocks.set(block.userId, { ...block, donePosition });
      return { numbers, isFinished: false };
    }
    if (badge.state !== "active" && badge.state !== "suspended") continue;
    takeStep(draft, origin, badge, { kind: "revoke" });
    numbers.push(badge.number);
    donePosition = badge.position;
  }
  const isFinished = through === null;
  draft.blocks.set(block.userId, { ...block, donePosition: isFinished ? donePosition : last, isRevoking: !isFinished });
  return { numbers, isFinished };
}

/** The badges of a user that were read, in the order of issue. */
export function badgesOf(draft: Draft, userId: string): IssuedBadge[] {
  return [...draft.badges.values()]
    .filter((row): row is IssuedBadge => isIssued(row) && row.userId === userId)
    .sort((one, other) => one.position - other.position);
}
