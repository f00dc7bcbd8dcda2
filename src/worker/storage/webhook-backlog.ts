import * as z from "zod";
import type { Database } from "./database.ts";
import type { EventId } from "./webhook-events.ts";

/**
 * What the sweep asks of the outbox. It asks application by application and takes some of each, so the backlog of one
 * receiver delays nobody else's events (contract section 8). An application without any costs one look into an index.
 * Events of a disabled application wait, so nothing is asked of it.
 */

/** The `place` of an event is its position among those of its application. */
const SELECT_DUE = `
  SELECT application_id, id FROM (
    SELECT event.application_id, event.id, event.due_at,
      row_number() OVER (PARTITION BY event.application_id ORDER BY event.due_at, event.rowid) AS place
    FROM application CROSS JOIN webhook_event AS event
    WHERE application.disabled_at IS NULL AND event.rowid IN (
      SELECT rowid FROM webhook_event AS own
      WHERE own.application_id = application.id AND own.state = 'pending' AND own.due_at <= ?1 AND own.created_at <= ?2
      ORDER BY own.due_at, own.rowid LIMIT ?3))
  ORDER BY place, due_at LIMIT ?4`;

const dueRows = z.array(
  z
    .object({ application_id: z.string(), id: z.string() })
    .transform(({ application_id: applicationId, id: eventId }) => ({ applicationId, eventId })),
);

/**
 * Events that are due and whose wake-up may have been lost: of each application the longest due first, and
 * of one millisecond in the order in which they were inserted.
 *
 * @param now milliseconds, like `createdBefore`
 */
export async function findDueEvents(
  db: Database,
  { now, createdBefore, perApplication, limit }: Record<"now" | "createdBefore" | "perApplication" | "limit", number>,
): Promise<EventId[]> {
  const { results } = await db.run((_, d1) =>
    d1.prepare(SELECT_DUE).bind(now, createdBefore, perApplication, limit).all(),
  );
  return dueRows.parse(results);
}

/**
 * The second condition on the state repeats that of the index `webhook_event_stopped`: without it SQLite reads all that
 * the application ever sent. Due like those that were never tried, so all of them go in the order in which they were made.
 */
const RELEASE_HELD = `
  UPDATE webhook_event SET state = 'pending', attempts = 0, due_at = 0
  WHERE rowid IN (
    SELECT event.rowid FROM application CROSS JOIN webhook_event AS event
    WHERE application.webhook_held_at IS NULL AND application.webhook_url IS NOT NULL AND application.disabled_at IS NULL
      AND event.rowid IN (
        SELECT rowid FROM webhook_event AS own
        WHERE own.application_id = application.id AND own.state = 'held' AND own.state IN ('exhausted', 'held')
        ORDER BY own.id LIMIT ?1))`;

/**
 * Held events of endpoints that are held no longer become due, the oldest first.
 *
 * @param perApplication most events of one application
 * @returns how many
 */
export async function releaseHeldEvents(db: Database, perApplication: number): Promise<number> {
  const { meta } = await db.run((_, d1) => d1.prepare(RELEASE_HELD).bind(perApplication).run());
  return meta.changes;
}
