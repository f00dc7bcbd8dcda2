import * as z from "zod";
import type { ApplicationId, UserDigest } from "../../shared/identifiers.ts";
import { type ScannedPage, scanPage } from "./bounded-scan.ts";
import type { Database } from "./database.ts";

/** A blocked user. `blockedAt` is milliseconds. */
const blockedUserRow = z.object({ userId: z.string(), blockedAt: z.number() });
export type BlockedUserRow = z.infer<typeof blockedUserRow>;

/** An application's blocked users, in the order in which they were blocked. One round trip. */
export function listBlockedUsers(
  db: Database,
  applicationId: ApplicationId,
  { after, perPage }: { after: BlockedUserRow | null; perPage: number },
): Promise<ScannedPage<BlockedUserRow>> {
  return scanPage(db, {
    table: "blocked_user",
    ranges: (bind) => {
      const start = after && `AND (blocked_at, user_id) > (${bind(after.blockedAt)}, ${bind(after.userId)})`;
      return [`application_id = ${bind(applicationId)} ${start ?? ""}`];
    },
    order: "blocked_at, user_id",
    columns: "user_id AS userId, blocked_at AS blockedAt",
    rows: z.array(blockedUserRow),
    perPage,
  });
}

const IS_BLOCKED = `
  SELECT 1 FROM blocked_user WHERE application_id = ?1 AND (user_id = ?2 OR (user_digest IS NOT NULL AND user_digest = ?3))`;

/** Whether a user gets no badge (contract section 12). One round trip. */
export async function isBlocked(
  db: Database,
  { applicationId, userId, userDigest }: { applicationId: ApplicationId; userId: string; userDigest: UserDigest },
): Promise<boolean> {
  const rows = await db.rows(z.unknown(), IS_BLOCKED, [applicationId, userId, userDigest]);
  return rows.length > 0;
}
