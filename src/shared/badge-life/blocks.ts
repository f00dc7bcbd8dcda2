import { BLOCK_CHUNK_BADGES } from "../limits.ts";
import { deleteBlock, finishBlock, isBlocked, type User, writeBlock } from "../storage/blocked-users.ts";
import type { Database } from "../storage/d1.ts";
import { findRevocable } from "../storage/issued-badges.ts";
import type { BadgeStore } from "./steps.ts";

/** The state of a user (contract section 12). */
export interface UserView {
  userId: string;
  blocked: boolean;
}

/** `revoked`: badge numbers. */
export type BlockedUserView = UserView & { revoked: string[] };

export async function showUser(db: Database, user: User): Promise<UserView> {
  return { userId: user.userId, blocked: await isBlocked(db, user) };
}

/**
 * Blocks a user and revokes their badges. The block is written first, so a badge that is issued at the same time is either
 * refused or found here. After a crash the sweep continues.
 */
export async function blockUser(store: BadgeStore, user: User): Promise<BlockedUserView> {
  await writeBlock(store.db, user, store.now());
  const revoked = await revokeAll(store, user);
  return { userId: user.userId, blocked: true, revoked: revoked.map(String) };
}

export async function unblockUser(db: Database, user: User): Promise<BlockedUserView> {
  await deleteBlock(db, user);
  return { userId: user.userId, blocked: false, revoked: [] };
}

/** Revokes every badge of a blocked user, in chunks. @returns the numbers that this call revoked, in the order of issue */
export async function revokeAll(store: BadgeStore, user: User): Promise<number[]> {
  const revoked: number[] = [];
  let after = 0;
  for (;;) {
    const badges = await findRevocable(store.db, user, after, BLOCK_CHUNK_BADGES);
    const last = badges.at(-1);
    if (!last) break;
    const changed = new Set(await store.writeSteps(user.applicationId, badges, { kind: "revoke" }, store.now()));
    revoked.push(...badges.map(({ number }) => number).filter((number) => changed.has(number)));
    // If badges were changed concurrently, the chunk is read again.
    if (changed.size === badges.length) after = last.position;
  }
  await finishBlock(store.db, user);
  return revoked;
}
