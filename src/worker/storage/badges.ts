import { and, asc, desc, eq, gt, isNotNull, isNull, type SQL, sql } from "drizzle-orm";
import { alias, type QueryBuilder } from "drizzle-orm/sqlite-core";
import * as z from "zod";
import type { DeviceId } from "../../shared/identifiers.ts";
import { badge, STORED_STATES, type StoredState } from "../../shared/schema.ts";
import { lastChange } from "../../shared/storage/high-water.ts";
import { type Database, type Query, queryOf } from "./database.ts";
import { highestTurn } from "./turns.ts";

/** The key of a badge (contract section 1). `device` is the keyed digest of the udid. */
export interface UserDevice {
  applicationId: string;
  device: DeviceId;
  userId: string;
}

/** A user device's badge, in any state. */
export interface StoredBadge {
  number: number;
  metadata: string | null;
  state: StoredState;
  /** Milliseconds, or null. */
  expiresAt: number | null;
  /** Number of the device's current badge: the one returned by its last login. */
  currentNumber: number;
}

export interface ListedBadge {
  number: number;
  userId: string;
  metadata: string | null;
  position: number;
  state: StoredState;
  /** Milliseconds, or null. */
  expiresAt: number | null;
}

const userDeviceParameters = {
  applicationId: sql.placeholder("applicationId"),
  device: sql.placeholder("device"),
  userId: sql.placeholder("userId"),
};

const issued = alias(badge, "issued");

/** The number of a device's current badge (src/worker/storage/turns.ts), as a subquery that reads at most two rows. */
function currentNumber(builder: QueryBuilder): SQL<number> {
  const ofDevice = and(
    eq(issued.applicationId, userDeviceParameters.applicationId),
    eq(issued.device, userDeviceParameters.device),
    isNotNull(issued.position),
    isNull(issued.retiredAt),
  );
  // 1 is a literal, not a parameter: SQLite must see that the condition implies that of the partial index.
  const ofSeveral = builder
    .select({ number: issued.number })
    .from(issued)
    .where(and(ofDevice, sql`${issued.turn} > 1`))
    .orderBy(desc(issued.turn))
    .limit(1);
  // Naming `user_id` makes SQLite search by `badge_user_device` instead of reading every badge of the application.
  const only = builder
    .select({ number: issued.number })
    .from(issued)
    .where(and(ofDevice, isNotNull(issued.userId)))
    .limit(1);
  return sql<number>`coalesce((${ofSeveral}), (${only}))`;
}

export const selectBadge = queryOf((builder) =>
  builder
    .select({
      number: badge.number,
      metadata: badge.metadata,
      state: badge.state,
      expiresAt: badge.expiresAt,
      currentNumber: currentNumber(builder).as("current_number"),
    })
    .from(badge)
    .where(
      and(
        eq(badge.applicationId, userDeviceParameters.applicationId),
        eq(badge.device, userDeviceParameters.device),
        eq(badge.userId, userDeviceParameters.userId),
        isNotNull(badge.position),
        isNull(badge.retiredAt),
      ),
    ),
);

const storedState = z.enum(STORED_STATES);
const badgeRow = z
  .tuple([z.number(), z.string().nullable(), storedState, z.number().nullable(), z.number()])
  .optional();

/** A user device's badge, in any state. One round trip. */
export async function findBadge(db: Database, userDevice: UserDevice): Promise<StoredBadge | undefined> {
  const [first] = await db.rows(selectBadge(), { ...userDevice });
  const row = badgeRow.parse(first);
  return row && { number: row[0], metadata: row[1], state: row[2], expiresAt: row[3], currentNumber: row[4] };
}

export const selectCurrentBadge = queryOf((builder) =>
  builder
    .select({
      number: badge.number,
      signingKeyId: badge.signingKeyId,
      state: badge.state,
      expiresAt: badge.expiresAt,
      position: badge.position,
    })
    .from(badge)
    .where(eq(badge.number, currentNumber(builder))),
);

const currentBadgeRow = z
  .tuple([z.number(), z.number().nullable(), storedState, z.number().nullable(), z.number()])
  .optional();

export interface CurrentBadge {
  number: number;
  signingKeyId: number | null;
  state: StoredState;
  /** Milliseconds, or null. */
  expiresAt: number | null;
  position: number;
}

/** The device's current badge, which signing uses, in any state. One round trip. */
export async function findCurrentBadge(
  db: Database,
  device: Omit<UserDevice, "userId">,
): Promise<CurrentBadge | undefined> {
  const [first] = await db.rows(selectCurrentBadge(), { ...device });
  const row = currentBadgeRow.parse(first);
  return row && { number: row[0], signingKeyId: row[1], state: row[2], expiresAt: row[3], position: row[4] };
}

const MAKE_CURRENT = `
  UPDATE badge SET turn = 1 + ${highestTurn({ applicationId: "badge.application_id", device: "badge.device" })}
  WHERE number = ?1 AND position IS NOT NULL`;

/** New metadata is a change in the feed. Compare-and-set, so that a delayed write cannot replace newer metadata. */
const REPLACE_METADATA = `
  UPDATE badge SET metadata = ?2, changed_at = ?3, change = 1 + ${lastChange("badge.application_id")}
  WHERE number = ?1 AND position IS NOT NULL AND metadata IS ?4`;

/**
 * Records what a login changes in its badge. One round trip.
 *
 * @param login `metadata`: new JSON text, or null to keep the stored one; `readMetadata`: the stored text as it was read;
 *   `isCurrent`: whether the badge is already its device's current one
 * @param now milliseconds
 */
export async function recordLogin(
  db: Database,
  number: number,
  { metadata, readMetadata, isCurrent }: { metadata: string | null; readMetadata: string | null; isCurrent: boolean },
  now: number,
): Promise<void> {
  await db.run((_, d1) =>
    d1.batch([
      ...(isCurrent ? [] : [d1.prepare(MAKE_CURRENT).bind(number)]),
      ...(metadata === null ? [] : [d1.prepare(REPLACE_METADATA).bind(number, metadata, now, readMetadata)]),
    ]),
  );
}

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

/** Badges that have not ended, after a position, oldest first; of one user when `userId` is issued. One round trip. */
export async function listBadges(
  db: Database,
  page: { applicationId: string; userId: string | null; after: number; limit: number },
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
