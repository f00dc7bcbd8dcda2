import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { type ScannedPage, scanPage } from "./bounded-scan.ts";
import type { Database } from "./database.ts";

/** A blocked user. `blockedAt` is milliseconds. */
export interface BlockedUserRow {
  userId: string;
  blockedAt: number;
}

const blockedRows: z.ZodType<BlockedUserRow[]> = z.array(z.object({ userId: z.string(), blockedAt: z.number() }));

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
    rows: blockedRows,
    perPage,
  });
}
