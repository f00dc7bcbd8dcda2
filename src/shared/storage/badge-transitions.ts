import type { D1Database, D1PreparedStatement } from "@cloudflare/workers-types";
import * as z from "zod";
import type { ApplicationId } from "../identifiers.ts";
import type { StoredState } from "../schema.ts";
import { type Database, writtenIds } from "./d1.ts";
import { changeOf, type HighWater, lastChange, renewEpochIfRestored } from "./high-water.ts";
import { insertEventsOf } from "./outbox.ts";

/** The new state of a badge, decided from the row that was read. Times are milliseconds. */
export interface Transition {
  number: number;
  /** The badge's change number when it was read. If it has changed since, nothing is written. */
  readChange: number;
  state: StoredState;
  expiresAt: number | null;
  endedAt: number | null;
  changedAt: number;
  /** Null when the change causes no event. */
  event: { id: string; name: string; payloadUpToChange: string } | null;
}

const TRANSITIONS = "(SELECT key AS row_index, value AS row FROM json_each(?1))";

const IS_AS_READ = `badge.number = row ->> 'number' AND badge.application_id = ?2
  AND ${changeOf("badge")} = row ->> 'readChange'`;

/** The same in both statements, because the first one changes no badge. */
const NEW_CHANGE = `row_index + 1 + max(${lastChange("?2")}, ?3)`;

/** Completes the payload with its last member, the change number, which is assigned here. */
const INSERT_EVENTS = insertEventsOf(
  {
    id: "row ->> '$.event.id'",
    event: "row ->> '$.event.name'",
    payload: `(row ->> '$.event.payloadUpToChange') || (${NEW_CHANGE}) || '}}'`,
    createdAt: "row ->> 'changedAt'",
  },
  `${TRANSITIONS} JOIN badge ON ${IS_AS_READ}`,
);

const UPDATE_BADGES = `
  UPDATE badge SET state = row ->> 'state', expires_at = row ->> 'expiresAt', ended_at = row ->> 'endedAt',
    changed_at = row ->> 'changedAt', change = ${NEW_CHANGE}, status_change = ${NEW_CHANGE}
  FROM ${TRANSITIONS}
  WHERE ${IS_AS_READ}
  RETURNING badge.number AS number, change`;

/** Includes badges that an earlier try of the same call revoked, when its response was lost. */
const SELECT_REVOKED = `
  SELECT badge.number AS number FROM ${TRANSITIONS}
  JOIN badge ON badge.number = row ->> 'number' AND badge.application_id = ?2 AND badge.state = 'revoked'`;

const revokedRows = z.array(z.object({ number: z.number() }));

const changedRows = z.array(z.object({ number: z.number(), change: z.number() }));

export interface WrittenTransitions {
  /** The badges that were changed, with their new change numbers. */
  changed: { number: number; change: number }[];
  /** Numbers of the badges that are revoked now, by this call or another. */
  revoked: number[];
  /** IDs of events that are due. */
  events: string[];
}

/**
 * Writes transitions of one application with their events, each only if its badge has not changed since it was read.
 * One transaction, one round trip.
 *
 * @param seen the highest numbers that the caller has seen written
 * @param more statements that belong to the same transaction
 */
export async function writeTransitions(
  db: Database,
  applicationId: ApplicationId,
  transitions: readonly Transition[],
  seen: HighWater,
  more: (d1: D1Database) => D1PreparedStatement[] = () => [],
): Promise<WrittenTransitions> {
  const rows = JSON.stringify(transitions);
  const [, inserted, updated, revoked] = await db.run((_, d1) =>
    d1.batch([
      renewEpochIfRestored(d1, applicationId, seen),
      ...[INSERT_EVENTS, UPDATE_BADGES].map((sql) => d1.prepare(sql).bind(rows, applicationId, seen.change)),
      d1.prepare(SELECT_REVOKED).bind(rows, applicationId),
      ...more(d1),
    ]),
  );
  return {
    changed: changedRows.parse(updated?.results),
    revoked: revokedRows.parse(revoked?.results).map(({ number }) => number),
    events: [...writtenIds(inserted)],
  };
}

const OPEN_REBIND_WINDOW = `
  UPDATE badge SET rebind_until = ?4
  WHERE badge.number = ?1 AND badge.application_id = ?2 AND ${changeOf("badge")} = ?3
  RETURNING number`;

/**
 * Lets another key replace a badge's key, unless the badge has changed since it was read. One round trip.
 *
 * @param until milliseconds
 * @returns whether it was written
 */
export async function writeRebindWindow(
  db: Database,
  { number, applicationId, change }: { number: number; applicationId: ApplicationId; change: number },
  until: number,
): Promise<boolean> {
  const { results } = await db.run((_, d1) =>
    d1.prepare(OPEN_REBIND_WINDOW).bind(number, applicationId, change, until).all(),
  );
  return results.length > 0;
}
