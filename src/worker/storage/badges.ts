import { and, asc, desc, eq, gt, isNotNull, type SQL, sql } from "drizzle-orm";
import { alias, type QueryBuilder } from "drizzle-orm/sqlite-core";
import * as z from "zod";
import { badge } from "../../shared/schema.ts";
import { type Database, queryOf } from "./database.ts";
import { highestTurn } from "./turns.ts";

/** The key of a badge (contract section 1). `device` is the keyed digest of the udid. */
export interface UserDevice {
  applicationId: string;
  device: string;
  userId: string;
}

/** A badge that a user device has. */
export interface StoredBadge {
  number: number;
  metadata: string | null;
  /** The number that the device's last successful request answered. */
  currentNumber: number;
}

export interface ListedBadge {
  number: number;
  userId: string;
  metadata: string | null;
  position: number;
}

const userDeviceParameters = {
  applicationId: sql.placeholder("applicationId"),
  device: sql.placeholder("device"),
  userId: sql.placeholder("userId"),
};

const given = alias(badge, "given");

/** The number of a device's current badge (src/worker/storage/turns.ts), as a subquery that reads at most two rows. */
function currentNumber(builder: QueryBuilder): SQL<number> {
  const ofDevice = and(
    eq(given.applicationId, userDeviceParameters.applicationId),
    eq(given.device, userDeviceParameters.device),
    isNotNull(given.position),
  );
  // 1 is part of the text: SQLite uses a partial index only for a condition that it can compare with the index's own.
  const ofSeveral = builder
    .select({ number: given.number })
    .from(given)
    .where(and(ofDevice, sql`${given.turn} > 1`))
    .orderBy(desc(given.turn))
    .limit(1);
  // Naming `user_id` makes SQLite search by `badge_user_device` instead of reading every badge of the application.
  const only = builder
    .select({ number: given.number })
    .from(given)
    .where(and(ofDevice, isNotNull(given.userId)))
    .limit(1);
  return sql<number>`coalesce((${ofSeveral}), (${only}))`;
}

export const selectBadge = queryOf((builder) =>
  builder
    .select({
      number: badge.number,
      metadata: badge.metadata,
      currentNumber: currentNumber(builder).as("current_number"),
    })
    .from(badge)
    .where(
      and(
        eq(badge.applicationId, userDeviceParameters.applicationId),
        eq(badge.device, userDeviceParameters.device),
        eq(badge.userId, userDeviceParameters.userId),
        isNotNull(badge.position),
      ),
    ),
);

const badgeRow = z.tuple([z.number(), z.string().nullable(), z.number()]).optional();

/** The issued badge of a user device. One round trip. */
export async function findBadge(db: Database, userDevice: UserDevice): Promise<StoredBadge | undefined> {
  const [first] = await db.rows(selectBadge(), { ...userDevice });
  const row = badgeRow.parse(first);
  return row && { number: row[0], metadata: row[1], currentNumber: row[2] };
}

export const selectCurrentBadge = queryOf((builder) =>
  builder
    .select({ number: badge.number, signingKeyId: badge.signingKeyId })
    .from(badge)
    .where(eq(badge.number, currentNumber(builder))),
);

const currentBadgeRow = z.tuple([z.number(), z.number().nullable()]).optional();

/** The badge that signing uses: the one the device was answered last. One round trip. */
export async function findCurrentBadge(
  db: Database,
  device: Omit<UserDevice, "userId">,
): Promise<{ number: number; signingKeyId: number | null } | undefined> {
  const [first] = await db.rows(selectCurrentBadge(), { ...device });
  const row = currentBadgeRow.parse(first);
  return row && { number: row[0], signingKeyId: row[1] };
}

const MAKE_CURRENT = `
  UPDATE badge SET metadata = coalesce(?2, metadata),
    turn = 1 + ${highestTurn({ applicationId: "badge.application_id", device: "badge.device" })}
  WHERE number = ?1 AND position IS NOT NULL`;

/** Makes an issued badge its device's current one and, unless `metadata` is null, stores that. */
export async function makeCurrent(db: Database, number: number, metadata: string | null): Promise<void> {
  await db.run((_, d1) => d1.prepare(MAKE_CURRENT).bind(number, metadata).run());
}

/** Replaces the metadata of an issued badge. */
export async function updateMetadata(db: Database, number: number, metadata: string): Promise<void> {
  await db.run((orm) =>
    orm
      .update(badge)
      .set({ metadata })
      .where(and(eq(badge.number, number), isNotNull(badge.position))),
  );
}

const pageColumns = {
  number: badge.number,
  userId: badge.userId,
  metadata: badge.metadata,
  position: badge.position,
};

/** In the order of `pageColumns`. */
const pageRows = z.array(z.tuple([z.number(), z.string(), z.string().nullable(), z.number()]));

export const selectPage = queryOf((builder) =>
  builder
    .select(pageColumns)
    .from(badge)
    .where(
      and(
        eq(badge.applicationId, sql.placeholder("applicationId")),
        gt(badge.position, sql.placeholder("after")),
        isNotNull(badge.position),
      ),
    )
    .orderBy(asc(badge.position))
    .limit(sql.placeholder("limit")),
);

const selectUserPage = queryOf((builder) =>
  builder
    .select(pageColumns)
    .from(badge)
    .where(
      and(
        eq(badge.applicationId, sql.placeholder("applicationId")),
        eq(badge.userId, sql.placeholder("userId")),
        gt(badge.position, sql.placeholder("after")),
        isNotNull(badge.position),
      ),
    )
    .orderBy(asc(badge.position))
    .limit(sql.placeholder("limit")),
);

/** Issued badges after a position, oldest first; of one user when `userId` is given. One round trip. */
export async function listBadges(
  db: Database,
  page: { applicationId: string; userId: string | null; after: number; limit: number },
): Promise<ListedBadge[]> {
  const { userId, ...rest } = page;
  const rows = await (userId === null ? db.rows(selectPage(), rest) : db.rows(selectUserPage(), { ...rest, userId }));
  return pageRows.parse(rows).map(([number, userId, metadata, position]) => ({ number, userId, metadata, position }));
}
