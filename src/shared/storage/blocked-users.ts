import * as z from "zod";
import { type ApplicationId, applicationId } from "../identifiers.ts";
import type { Database } from "./d1.ts";

export interface User {
  applicationId: ApplicationId;
  userId: string;
}

/**
 * Part of every statement that issues badges: a blocked user gets none.
 *
 * @param userId an SQL expression; the application ID is the statement's second parameter
 * @returns an SQL condition
 */
export const isNotBlocked = (userId: string): string => `NOT EXISTS (SELECT 1 FROM blocked_user
    WHERE blocked_user.application_id = ?2 AND blocked_user.user_id = ${userId})`;

const BLOCK = `
  INSERT INTO blocked_user (application_id, user_id, blocked_at, is_revoking) VALUES (?1, ?2, ?3, 1)
  ON CONFLICT (application_id, user_id) DO UPDATE SET is_revoking = 1`;

/** Blocks a user: no badge is issued to them from now on. May be repeated. */
export async function writeBlock(db: Database, { applicationId, userId }: User, now: number): Promise<void> {
  await db.run((_, d1) => d1.prepare(BLOCK).bind(applicationId, userId, now).run());
}

/** Records that every badge of the user has been revoked. */
export async function finishBlock(db: Database, { applicationId, userId }: User): Promise<void> {
  const finish = "UPDATE blocked_user SET is_revoking = 0 WHERE application_id = ?1 AND user_id = ?2";
  await db.run((_, d1) => d1.prepare(finish).bind(applicationId, userId).run());
}

export async function deleteBlock(db: Database, { applicationId, userId }: User): Promise<void> {
  const unblock = "DELETE FROM blocked_user WHERE application_id = ?1 AND user_id = ?2";
  await db.run((_, d1) => d1.prepare(unblock).bind(applicationId, userId).run());
}

export async function isBlocked(db: Database, { applicationId, userId }: User): Promise<boolean> {
  const select = "SELECT 1 FROM blocked_user WHERE application_id = ?1 AND user_id = ?2";
  const { results } = await db.run((_, d1) => d1.prepare(select).bind(applicationId, userId).all());
  return results.length > 0;
}

const SELECT_REVOKING = `
  SELECT application_id AS applicationId, user_id AS userId FROM blocked_user
  WHERE is_revoking = 1 AND blocked_at <= ?1 ORDER BY blocked_at LIMIT ?2 OFFSET ?3`;

const userRows = z.array(z.object({ applicationId, userId: z.string() }));

/** Users blocked before `blockedBefore` (milliseconds) who may still have badges that are not revoked; oldest blocks first. */
export async function findUnfinishedBlocks(
  db: Database,
  blockedBefore: number,
  { limit, offset }: { limit: number; offset: number },
): Promise<User[]> {
  const { results } = await db.run((_, d1) => d1.prepare(SELECT_REVOKING).bind(blockedBefore, limit, offset).all());
  return userRows.parse(results);
}
