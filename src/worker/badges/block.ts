import { BLOCK_CHUNK_BADGES } from "../../shared/limits.ts";
import type { Context } from "../context.ts";
import { deleteBlock, finishBlock, isBlocked, type User, writeBlock } from "../storage/blocked-users.ts";
import { findRevocable } from "../storage/issued-badges.ts";
import { writeSteps } from "./transitions.ts";

/** The state of a user (contract section 12). */
export interface UserView {
  userId: string;
  blocked: boolean;
}

export async function showUser(context: Context, applicationId: string, userId: string): Promise<UserView> {
  return { userId, blocked: await isBlocked(context.db, { applicationId, userId }) };
}

/**
 * Blocks a user and revokes their badges. The block is written first, so a badge that is issued at the same time is either
 * refused or found here. After a crash the sweep continues.
 */
export async function blockUser(
  context: Context,
  applicationId: string,
  userId: string,
): Promise<UserView & { revoked: string[] }> {
  const user = { applicationId, userId };
  await writeBlock(context.db, user, context.now());
  const revoked = await revokeAll(context, user);
  return { userId, blocked: true, revoked: revoked.map(String) };
}

export async function unblockUser(
  context: Context,
  applicationId: string,
  userId: string,
): Promise<UserView & { revoked: string[] }> {
  await deleteBlock(context.db, { applicationId, userId });
  return { userId, blocked: false, revoked: [] };
}

/** Revokes every badge of a blocked user, in chunks. @returns the numbers that this call revoked */
export async function revokeAll(context: Context, user: User): Promise<number[]> {
  const revoked: number[] = [];
  let after = 0;
  for (;;) {
    const badges = await findRevocable(context.db, user, after, BLOCK_CHUNK_BADGES);
    const last = badges.at(-1);
    if (!last) break;
    const changed = await writeSteps(context, user.applicationId, badges, { kind: "revoke" }, context.now());
    revoked.push(...changed);
    // If badges were changed concurrently, the chunk is read again.
    if (changed.length === badges.length) after = last.position;
  }
  await finishBlock(context.db, user);
  return revoked;
}
