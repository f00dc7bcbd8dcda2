import { and, asc, eq, gt, isNotNull, type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { badge, STORED_STATES, type StoredState } from "../../shared/schema.ts";
import { type Database, type Query, queryOf } from "./database.ts";

export interface ListedBadge {
  number: number;
  userId: string;
  metadata: string | null;
  position: number;
  state: StoredState;
  /** Milliseconds, or null. */
  expiresAt: number | null;
}

const storedState = z.enum(STORED_STATES);

const pageColumns = {
  number: badge.number,
  userId: badge.userId,
  metadata: badge.metadata,
  position: badge.position,
  state: badge.state,
  expiresAt: badge.expiresAt,
};

/** In the order of `pageColumns`. */
const pageRows = z.array(
  z.tuple([z.number(), z.string(), z.string().nullable(), z.number(), storedState, z.number().nullable()]),
);

/** Written as in the indexes `badge_page` and `badge_user_page`, so that ended badges are not even read. */
const isListed = sql`(${badge.endedAt} IS NOT NULL) = 0`;

/** @param ofUser also limits the page to one user */
const pageQuery = (ofUser?: SQL): (() => Query) =>
  queryOf((builder) =>
    builder
      .select(pageColumns)
      .from(badge)
      .where(
        and(
          eq(badge.applicationId, sql.placeholder("applicationId")),
          ofUser,
          isListed,
          gt(badge.position, sql.placeholder("after")),
          isNotNull(badge.position),
        ),
      )
      .orderBy(asc(badge.position))
      .limit(sql.placeholder("limit")),
  );

export const selectPage = pageQuery();
const selectUserPage = pageQuery(eq(badge.userId, sql.placeholder("userId")));

/** Badges that have not ended, after a position, oldest first; of one user when `userId` is given. One round trip. */
export async function listBadges(
  db: Database,
  page: { applicationId: ApplicationId; userId: string | null; after: number; limit: number },
): Promise<ListedBadge[]> {
  const { userId, ...rest } = page;
  const rows = await (userId === null ? db.rows(selectPage(), rest) : db.rows(selectUserPage(), { ...rest, userId }));
  return pageRows.parse(rows).map(([number, userId, metadata, position, state, expiresAt]) => ({
    number,
    userId,
    metadata,
    position,
    state,
    expiresAt,
  }));
}
