import { type AnyColumn, and, asc, desc, eq, gt, isNotNull, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import * as z from "zod";
import { type Database, prepared } from "./database.ts";
import { badge } from "./schema.ts";

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

/**
 * Issued, with a user. Every issued badge has one; to say so makes SQLite search a device's badges by
 * `badge_user_device`. Else it takes `badge_page` and reads all badges of the application.
 */
const isIssuedToUser = (table: { position: AnyColumn; userId: AnyColumn }): SQL | undefined =>
  and(isNotNull(table.position), isNotNull(table.userId));

/** A device's badges with its current one first. `position` decides between two that one batch wrote. */
const newestTurnFirst = (table: { turn: AnyColumn; position: AnyColumn }): SQL[] => [
  desc(table.turn),
  desc(table.position),
];

const selectBadge = prepared((orm) => {
  const sibling = alias(badge, "sibling");
  const currentNumber = orm
    .select({ number: sibling.number })
    .from(sibling)
    .where(
      and(
        eq(sibling.applicationId, userDeviceParameters.applicationId),
        eq(sibling.device, userDeviceParameters.device),
        isIssuedToUser(sibling),
      ),
    )
    .orderBy(...newestTurnFirst(sibling))
    .limit(1);
  return orm
    .select({
      number: badge.number,
      metadata: badge.metadata,
      currentNumber: sql<number>`(${currentNumber})`.as("current_number"),
    })
    .from(badge)
    .where(
      and(
        eq(badge.applicationId, userDeviceParameters.applicationId),
        eq(badge.device, userDeviceParameters.device),
        eq(badge.userId, userDeviceParameters.userId),
        isNotNull(badge.position),
      ),
    )
    .prepare();
});

/** The issued badge of a user device. One round trip. */
export function findBadge(db: Database, userDevice: UserDevice): Promise<StoredBadge | undefined> {
  return db.run((orm) => selectBadge(orm).get({ ...userDevice }));
}

const selectCurrentBadge = prepared((orm) =>
  orm
    .select({ number: badge.number, signingKeyId: badge.signingKeyId })
    .from(badge)
    .where(
      and(
        eq(badge.applicationId, userDeviceParameters.applicationId),
        eq(badge.device, userDeviceParameters.device),
        isIssuedToUser(badge),
      ),
    )
    .orderBy(...newestTurnFirst(badge))
    .limit(1)
    .prepare(),
);

/** The badge that signing uses: the one the device was answered last. One round trip. */
export function findCurrentBadge(
  db: Database,
  device: Omit<UserDevice, "userId">,
): Promise<{ number: number; signingKeyId: number | null } | undefined> {
  return db.run((orm) => selectCurrentBadge(orm).get({ ...device }));
}

/** Makes an issued badge its device's current one and, unless `metadata` is null, stores that. */
export async function updateBadge(db: Database, number: number, metadata: string | null): Promise<void> {
  const highestTurn = sql`(
    SELECT max(sibling.turn) FROM badge AS sibling
    WHERE sibling.application_id = ${badge.applicationId} AND sibling.device = ${badge.device}
      AND sibling.position IS NOT NULL AND sibling.user_id IS NOT NULL
  )`;
  await db.run((orm) =>
    orm
      .update(badge)
      .set({ metadata: sql`coalesce(${metadata}, ${badge.metadata})`, turn: sql`${highestTurn} + 1` })
      .where(and(eq(badge.number, number), isNotNull(badge.position))),
  );
}

const pageColumns = {
  number: badge.number,
  userId: badge.userId,
  metadata: badge.metadata,
  position: badge.position,
};

/** A row as D1 gives it, in the order of `pageColumns`: what Drizzle does with a thousand of them costs a third of the page. */
const pageRows = z.array(z.tuple([z.number(), z.string(), z.string().nullable(), z.number()]));

const selectPage = prepared((orm) =>
  orm
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
    .limit(sql.placeholder("limit"))
    .prepare(),
);

const selectUserPage = prepared((orm) =>
  orm
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
    .limit(sql.placeholder("limit"))
    .prepare(),
);

/** Issued badges after a position, oldest first; of one user when `userId` is given. One round trip. */
export async function listBadges(
  db: Database,
  page: { applicationId: string; userId: string | null; after: number; limit: number },
): Promise<ListedBadge[]> {
  const { userId, ...rest } = page;
  const rows = await db.run((orm) =>
    userId === null ? selectPage(orm).values(rest) : selectUserPage(orm).values({ ...rest, userId }),
  );
  return pageRows.parse(rows).map(([number, userId, metadata, position]) => ({ number, userId, metadata, position }));
}
