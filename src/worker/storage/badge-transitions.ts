import * as z from "zod";
import type { StoredState } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { changeOf, type HighWater, lastChange, renewEpochIfRestored } from "./high-water.ts";
import { isSubscribedTo } from "./subscriptions.ts";
import { writtenIds } from "./written-ids.ts";

/** What a badge becomes, decided from what was read of it. Times are milliseconds. */
export interface Transition {
  number: number;
  /** The change number that was read: if the badge has another by now, nothing is written. */
  readChange: number;
  state: StoredState;
  expiresAt: number | null;
  endedAt: number | null;
  changedAt: number;
  /** Null when the change is none that events tell of. */
  event: { id: string; name: string; payloadUpToChange: string } | null;
}

const TRANSITIONS = "(SELECT key AS place, value AS row FROM json_each(?1))";

const IS_AS_READ = `badge.number = row ->> 'number' AND badge.application_id = ?2
  AND ${changeOf("badge")} = row ->> 'readChange'`;

/** Both statements see the same last change, because the first one changes no badge. */
const NEW_CHANGE = `place + 1 + max(${lastChange("?2")}, ?3)`;

/** The payload's last member is the change number, which is only known here. */
const INSERT_EVENTS = `
  INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
  SELECT ?2, row ->> '$.event.id', row ->> '$.event.name',
    (row ->> '$.event.payloadUpToChange') || (${NEW_CHANGE}) || '}}',
    iif(application.webhook_held_at IS NULL, 'pending', 'held'), 0, row ->> 'changedAt'
  FROM ${TRANSITIONS}
  JOIN badge ON ${IS_AS_READ}
  JOIN application ON application.id = ?2 AND ${isSubscribedTo("row ->> '$.event.name'")}
  WHERE true
  ON CONFLICT DO NOTHING
  RETURNING id AS written`;

const UPDATE_BADGES = `
  UPDATE badge SET state = row ->> 'state', expires_at = row ->> 'expiresAt', ended_at = row ->> 'endedAt',
    changed_at = row ->> 'changedAt', change = ${NEW_CHANGE}
  FROM ${TRANSITIONS}
  WHERE ${IS_AS_READ}
  RETURNING badge.number AS number, change`;

/** Also those that an earlier try of the same call revoked, whose response was lost. */
const SELECT_REVOKED = `
  SELECT badge.number AS number FROM ${TRANSITIONS}
  JOIN badge ON badge.number = row ->> 'number' AND badge.application_id = ?2 AND badge.state = 'revoked'`;

const revokedRows = z.array(z.object({ number: z.number() }));

const changedRows = z.array(z.object({ number: z.number(), change: z.number() }));

export interface WrittenTransitions {
  /** Those that were written, with their new change numbers. */
  changed: { number: number; change: number }[];
  /** Those that are revoked, by this call or another. */
  revoked: number[];
  /** IDs of events that are due. */
  events: string[];
}

/**
 * Writes transitions of one application with their events, each only if its badge is still as it was read: one
 * transaction and one round trip.
 *
 * @param seen the highest numbers that the caller has seen written
 */
export async function writeTransitions(
  db: Database,
  applicationId: string,
  transitions: readonly Transition[],
  seen: HighWater,
): Promise<WrittenTransitions> {
  const rows = JSON.stringify(transitions);
  const [, inserted, updated, revoked] = await db.run((_, d1) =>
    d1.batch([
      renewEpochIfRestored(d1, applicationId, seen),
      ...[INSERT_EVENTS, UPDATE_BADGES].map((sql) => d1.prepare(sql).bind(rows, applicationId, seen.change)),
      d1.prepare(SELECT_REVOKED).bind(rows, applicationId),
    ]),
  );
  return {
    changed: changedRows.parse(updated?.results),
    revoked: revokedRows.parse(revoked?.results).map(({ number }) => number),
    events: [...writtenIds(inserted)],
  };
}
