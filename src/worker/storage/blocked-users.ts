import { and, eq, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { ApplicationId, UserDigest } from "../../shared/identifiers.ts";
import { blockedUser } from "../../shared/schema.ts";
import { SCANNED, type ScannedPage, scanPage, scanStatements } from "./bounded-scan.ts";
import type { Database } from "./database.ts";
import { type Placeholders, query, statement } from "./statement.ts";

/** A blocked user. `blockedAt` is milliseconds. */
export type BlockedUserRow = Pick<typeof blockedUser.$inferSelect, "userId" | "blockedAt">;

const scanned = alias(blockedUser, SCANNED);

const PAGE = scanStatements((p: Placeholders<BlockedUserRow & { applicationId: ApplicationId }>) => ({
  table: blockedUser,
  ranges: [
    and(
      eq(blockedUser.applicationId, p.applicationId),
      sql`(${blockedUser.blockedAt}, ${blockedUser.userId}) > (${p.blockedAt}, ${p.userId})`,
    ),
  ],
  order: sql`${sql.identifier(blockedUser.blockedAt.name)}, ${sql.identifier(blockedUser.userId.name)}`,
  fields: { userId: scanned.userId, blockedAt: scanned.blockedAt },
}));

const BEFORE_ALL: BlockedUserRow = { blockedAt: 0, userId: "" };

/** An application's blocked users, in the order in which they were blocked. One round trip. */
export function listBlockedUsers(
  db: Database,
  applicationId: ApplicationId,
  { after, perPage }: { after: BlockedUserRow | null; perPage: number },
): Promise<ScannedPage<BlockedUserRow>> {
  const { blockedAt, userId } = after ?? BEFORE_ALL;
  return scanPage(db, PAGE, { applicationId, blockedAt, userId }, perPage);
}

interface NamedUser {
  applicationId: ApplicationId;
  userId: string;
  /** The digest under which a block outlives the user's erasure. */
  userDigest: UserDigest;
}

/** With OR, and without INDEXED BY, SQLite would read all of the application's blocked users. */
const FIND_BLOCK = statement((p: Placeholders<NamedUser>) =>
  query({ blockedAt: blockedUser.blockedAt }, (fields) => {
    const ofApplication = eq(blockedUser.applicationId, p.applicationId);
    return sql`SELECT ${fields} FROM ${blockedUser} WHERE ${ofApplication} AND ${blockedUser.userId} = ${p.userId}
      UNION ALL
      SELECT ${fields} FROM ${blockedUser} INDEXED BY blocked_user_digest
      WHERE ${ofApplication} AND ${blockedUser.userDigest} IS NOT NULL AND ${blockedUser.userDigest} = ${p.userDigest}`;
  }),
);

/** Whether a user is blocked (contract section 12). One round trip. */
export async function isBlocked(db: Database, user: NamedUser): Promise<boolean> {
  return (await db.all(FIND_BLOCK, user)).length > 0;
}
