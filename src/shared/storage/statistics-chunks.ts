import * as z from "zod";
import type { ApplicationId } from "../identifiers.ts";
import { STATISTICS_CHUNK_METADATA, STATISTICS_CHUNK_ROWS } from "../limits.ts";
import { EVENT_STATES } from "../schema.ts";
import type { Chunk, Counts } from "../statistics/counts.ts";
import type { Database } from "./d1.ts";

/** Chunks of an application's rows, counted. Every chunk costs the same, wherever it begins. */

export interface CountedRows {
  applicationId: ApplicationId;
  firstNumber: number;
  lastNumber: number;
  /** Numbers of invitations that ended later are still within the reuse delay; milliseconds, like the next one. */
  restedBefore: number;
  /** Badges issued before are not counted by day. */
  daysFrom: number;
}

/** @returns what the next rows of the kind that is being counted add. One round trip. */
export function readChunk(db: Database, rows: CountedRows, counts: Counts): Promise<Chunk> {
  const { counting, after, startedAt } = counts;
  switch (counting) {
    case "badges":
      return readBadges(db, rows, typeof after === "number" ? after : rows.firstNumber - 1, startedAt);
    case "invitations":
      return readInvitations(db, rows, after === null ? "" : String(after));
    case "events":
      return readEvents(db, rows, after === null ? "" : String(after));
    case "nothing":
      return Promise.resolve({ last: null });
  }
}

const count = z.number();

/** By the primary key. `?1` the number before the first, `?2` the application's last number. */
const BADGES = `(SELECT * FROM badge WHERE number > ?1 AND number <= ?2 ORDER BY number LIMIT ${STATISTICS_CHUNK_ROWS})`;

/** States as callers see them at the time `?3` (src/shared/badge-life/states.ts). */
const IS_EXPIRED =
  "state IN ('active', 'suspended') AND (ended_at IS NOT NULL OR expires_at IS NOT NULL AND expires_at <= ?3)";
const countState = (state: string, condition: string): string =>
  `count(*) FILTER (WHERE position IS NOT NULL AND ${condition}) AS ${state}`;

const COUNT_BADGES = `
  SELECT max(number) AS last, count(*) AS used, count(position) FILTER (WHERE retired_at IS NULL) AS issued,
    count(*) FILTER (WHERE retired_at IS NOT NULL) AS retired,
    count(*) FILTER (WHERE position IS NULL AND retired_at IS NULL) AS reserved,
    ${["active", "suspended"].map((state) => countState(state, `state = '${state}' AND NOT (${IS_EXPIRED})`)).join()},
    ${["revoked", "replaced"].map((state) => countState(state, `state = '${state}'`)).join()},
    ${countState("expired", IS_EXPIRED)}
  FROM ${BADGES}`;

const badgeRows = z.tuple([
  z.object({
    ...{ last: count.nullable(), used: count, issued: count, retired: count, reserved: count },
    ...{ active: count, suspended: count, revoked: count, replaced: count, expired: count },
  }),
]);

/** Days in UTC, since `?3`. */
const COUNT_DAYS = `
  SELECT cast(issued_at / 86400000 AS TEXT) AS day, count(*) AS badges FROM ${BADGES}
  WHERE position IS NOT NULL AND issued_at >= ?3 GROUP BY 1`;

const dayRows = z.array(z.object({ day: z.string(), badges: count }));

const COUNT_METADATA = `
  SELECT metadata, count(*) AS badges FROM ${BADGES} WHERE position IS NOT NULL AND retired_at IS NULL
  GROUP BY 1 ORDER BY badges DESC LIMIT ${STATISTICS_CHUNK_METADATA}`;

const metadataRows = z.array(z.object({ metadata: z.string().nullable(), badges: count }));

async function readBadges(db: Database, rows: CountedRows, after: number, at: number): Promise<Chunk> {
  const { lastNumber, daysFrom } = rows;
  const [counted, days, metadata] = await db.run((d1) =>
    d1.batch([
      d1.prepare(COUNT_BADGES).bind(after, lastNumber, at),
      d1.prepare(COUNT_DAYS).bind(after, lastNumber, daysFrom),
      d1.prepare(COUNT_METADATA).bind(after, lastNumber),
    ]),
  );
  const [{ last, used, issued, retired, reserved, ...badgesByState }] = badgeRows.parse(counted?.results);
  return {
    last: used < STATISTICS_CHUNK_ROWS ? null : last,
    numbers: { used, issued, retired, reserved },
    badgesByState,
    badgesByDay: Object.fromEntries(dayRows.parse(days?.results).map(({ day, badges }) => [day, badges])),
    metadata: metadataRows.parse(metadata?.results),
  };
}

/** Creation time and row ID, as text that sorts like the two. */
const INVITATION_KEY = "printf('%016d:%016d', created_at, rowid)";

/** `resting`: numbers that are still within the reuse delay: ended after `?4`. */
const COUNT_INVITATIONS = `
  SELECT max(key) AS last, count(*) AS rows,
    ${["pending", "claimed", "revoked", "expired"].map((state) => `count(*) FILTER (WHERE state = '${state}') AS ${state}`).join()},
    count(*) FILTER (WHERE state IN ('revoked', 'expired') AND ended_at > ?4) AS resting
  FROM (SELECT *, ${INVITATION_KEY} AS key FROM invitation
    WHERE application_id = ?1 AND (created_at, rowid) > (?2, ?3) ORDER BY created_at, rowid LIMIT ${STATISTICS_CHUNK_ROWS})`;

const invitationRows = z.tuple([
  z.object({
    ...{ last: z.string().nullable(), rows: count, resting: count },
    ...{ pending: count, claimed: count, revoked: count, expired: count },
  }),
]);

async function readInvitations(
  db: Database,
  { applicationId, restedBefore }: CountedRows,
  after: string,
): Promise<Chunk> {
  const [createdAt = 0, rowid = 0] = after.split(":").map(Number);
  const { results } = await db.run((d1) =>
    d1.prepare(COUNT_INVITATIONS).bind(applicationId, createdAt, rowid, restedBefore).all(),
  );
  const [{ last, rows, resting, ...invitations }] = invitationRows.parse(results);
  return { last: rows < STATISTICS_CHUNK_ROWS ? null : last, invitations, resting };
}

/** By the last outcome; null: not tried yet. */
const COUNT_EVENTS = `
  SELECT state, last_outcome AS outcome, count(*) AS events, max(id) AS last
  FROM (SELECT * FROM webhook_event WHERE application_id = ?1 AND id > ?2 ORDER BY id LIMIT ${STATISTICS_CHUNK_ROWS})
  GROUP BY state, last_outcome`;

const eventRows = z.array(
  z.object({ state: z.enum(EVENT_STATES), outcome: z.string().nullable(), events: count, last: z.string() }),
);

async function readEvents(db: Database, { applicationId }: CountedRows, after: string): Promise<Chunk> {
  const { results } = await db.run((d1) => d1.prepare(COUNT_EVENTS).bind(applicationId, after).all());
  const rows = eventRows.parse(results);
  const isLast = rows.reduce((sum, { events }) => sum + events, 0) < STATISTICS_CHUNK_ROWS;
  const last =
    rows
      .map((row) => row.last)
      .sort()
      .at(-1) ?? null;
  return {
    last: isLast ? null : last,
    deliveries: rows.map(({ state, outcome, events }) => ({ state, outcome, events })),
  };
}
