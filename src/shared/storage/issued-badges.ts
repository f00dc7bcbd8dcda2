import * as z from "zod";
import {
  type ApplicationId,
  applicationId,
  type DeviceId,
  deviceId,
  type InvitationDigest,
  invitationDigest,
} from "../identifiers.ts";
import { STORED_STATES, type StoredState } from "../schema.ts";
import type { Database } from "./d1.ts";
import { changeOf, lastChange } from "./high-water.ts";

/** A badge that was issued, in any state. Times are milliseconds. */
export interface IssuedBadgeRow {
  number: number;
  applicationId: ApplicationId;
  device: DeviceId;
  userId: string;
  /** JSON text, or null. */
  metadata: string | null;
  invitation: InvitationDigest | null;
  state: StoredState;
  expiresAt: number | null;
  endedAt: number | null;
  /** Of the key that it is bound to; null: it is not bound. */
  keyThumbprint: string | null;
  position: number;
  /** Number of its last change within the application. */
  change: number;
  changedAt: number;
}

const COLUMNS = `
  badge.number AS number, badge.application_id AS applicationId, badge.device AS device, badge.user_id AS userId,
  badge.metadata AS metadata, badge.invitation AS invitation, badge.state AS state, badge.expires_at AS expiresAt,
  badge.ended_at AS endedAt, badge.key_thumbprint AS keyThumbprint, badge.position AS position, ${changeOf("badge")} AS change,
  coalesce(badge.changed_at, badge.issued_at) AS changedAt`;

const rows: z.ZodType<IssuedBadgeRow[]> = z.array(
  z.object({
    number: z.number(),
    applicationId,
    device: deviceId,
    userId: z.string(),
    metadata: z.string().nullable(),
    invitation: invitationDigest.nullable(),
    state: z.enum(STORED_STATES),
    expiresAt: z.number().nullable(),
    endedAt: z.number().nullable(),
    keyThumbprint: z.string().nullable(),
    position: z.number(),
    change: z.number(),
    changedAt: z.number(),
  }),
);

/** An application's badge by its number; undefined if the number is only reserved. One round trip. */
export async function findIssuedBadge(
  db: Database,
  applicationId: ApplicationId,
  number: number,
): Promise<IssuedBadgeRow | undefined> {
  const [badge] = await findIssuedBadges(db, applicationId, [number]);
  return badge;
}

/**
 * An application's badges by their numbers. One round trip. The plus sign keeps SQLite from searching by application, which
 * would read all of its badges.
 */
export function findIssuedBadges(
  db: Database,
  applicationId: ApplicationId,
  numbers: readonly number[],
): Promise<IssuedBadgeRow[]> {
  return select(
    db,
    `WHERE badge.number IN (SELECT value FROM json_each(?1)) AND +badge.application_id = ?2
       AND badge.position IS NOT NULL`,
    [JSON.stringify(numbers), applicationId],
  );
}

/**
 * A user's badges that are neither revoked nor replaced, oldest first. One round trip.
 *
 * @param after a position
 */
export function findRevocable(
  db: Database,
  user: { applicationId: ApplicationId; userId: string },
  after: number,
  limit: number,
): Promise<IssuedBadgeRow[]> {
  return select(
    db,
    `WHERE badge.application_id = ?1 AND badge.user_id = ?2 AND badge.position IS NOT NULL AND badge.position > ?3
       AND (badge.ended_at IS NOT NULL) IN (0, 1) AND badge.state IN ('active', 'suspended')
     ORDER BY badge.position LIMIT ?4`,
    [user.applicationId, user.userId, after, limit],
  );
}

/** A user's badges that `GET /v1/badges` lists: those that are not noted to have ended. Newest first. One round trip. */
export function findListedOfUser(
  db: Database,
  user: { applicationId: ApplicationId; userId: string },
  limit: number,
): Promise<IssuedBadgeRow[]> {
  return select(
    db,
    `WHERE badge.application_id = ?1 AND badge.user_id = ?2 AND badge.position IS NOT NULL
       AND (badge.ended_at IS NOT NULL) = 0
     ORDER BY badge.position DESC LIMIT ?3`,
    [user.applicationId, user.userId, limit],
  );
}

/**
 * Badges of all applications whose end has passed and whose expiry is not recorded yet, earliest end first. One round
 * trip.
 *
 * @param after the last badge of the previous chunk
 */
export function findExpired(
  db: Database,
  now: number,
  after: { expiresAt: number; number: number },
  limit: number,
): Promise<IssuedBadgeRow[]> {
  return select(
    db,
    `WHERE badge.expires_at IS NOT NULL AND badge.ended_at IS NULL AND badge.expires_at <= ?1
       AND (badge.expires_at, badge.number) > (?2, ?3)
     ORDER BY badge.expires_at, badge.number LIMIT ?4`,
    [now, after.expiresAt, after.number, limit],
  );
}

async function select(db: Database, condition: string, values: readonly unknown[]): Promise<IssuedBadgeRow[]> {
  const { results } = await db.run((_, d1) =>
    d1
      .prepare(`SELECT ${COLUMNS} FROM badge ${condition}`)
      .bind(...values)
      .all(),
  );
  return rows.parse(results);
}

const SELECT_FEED = `
  SELECT feed_epoch AS epoch, ${lastChange("?1")} AS lastChange,
    (SELECT coalesce(badge.changed_at, badge.issued_at) FROM badge
      WHERE badge.application_id = ?1 AND badge.position IS NOT NULL AND ${changeOf("badge")} = ?2) AS changedAt
  FROM application WHERE id = ?1`;

const SELECT_CHANGES = `
  SELECT ${COLUMNS} FROM badge
  WHERE badge.application_id = ?1 AND badge.position IS NOT NULL AND ${changeOf("badge")} > ?2
  ORDER BY ${changeOf("badge")} LIMIT ?3`;

const feedRows = z.tuple([z.object({ epoch: z.string(), lastChange: z.number(), changedAt: z.number().nullable() })]);

export interface Changes {
  epoch: string;
  lastChange: number;
  /** When the last change before this page was made; null if its badge has changed again since, or there is no such change. */
  changedAt: number | null;
  badges: IssuedBadgeRow[];
}

/** An application's badges in the order of their last changes, after a change number. One round trip. */
export async function listChanges(
  db: Database,
  applicationId: ApplicationId,
  after: number,
  limit: number,
): Promise<Changes> {
  const [feed, badges] = await db.run((_, d1) =>
    d1.batch([
      d1.prepare(SELECT_FEED).bind(applicationId, after),
      d1.prepare(SELECT_CHANGES).bind(applicationId, after, limit),
    ]),
  );
  const [found] = feedRows.parse(feed?.results);
  return { ...found, badges: rows.parse(badges?.results) };
}
