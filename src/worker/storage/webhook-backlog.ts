import type { Database } from "./database.ts";
import { type EventId, eventIdRow } from "./webhook-events.ts";

/**
 * The sweep's queries of the outbox. They take a limited number of each application's events, so that one receiver's
 * backlog does not delay the others' events (contract section 8). An application without events costs one index lookup.
 * Disabled applications are skipped: their events wait.
 */

/** `rank`: an event's position among those of its application. */
const SELECT_DUE = `
  SELECT application_id, id FROM (
    SELECT event.application_id, event.id, event.due_at,
      row_number() OVER (PARTITION BY event.application_id ORDER BY event.due_at, event.id) AS rank
    FROM application CROSS JOIN webhook_event AS event
    WHERE application.disabled_at IS NULL AND event.application_id = application.id AND event.id IN (
      SELECT own.id FROM webhook_event AS own
      WHERE own.application_id = application.id AND own.state = 'pending' AND own.due_at <= ?1
        AND own.lease_until <= ?1 AND own.created_at <= ?2
      ORDER BY own.due_at, own.id LIMIT ?3))
  ORDER BY rank, due_at LIMIT ?4`;

/**
 * Due events whose wake-up may have been lost: each application's longest due first, and those due at once oldest first.
 *
 * @param now milliseconds, like `createdBefore`
 */
export function findDueEvents(
  db: Database,
  { now, createdBefore, perApplication, limit }: Record<"now" | "createdBefore" | "perApplication" | "limit", number>,
): Promise<EventId[]> {
  return db.rows(eventIdRow, SELECT_DUE, [now, createdBefore, perApplication, limit]);
}

/**
 * The second condition on the state repeats that of the index `webhook_event_stopped`: without it SQLite reads every event
 * of the application. `due_at` becomes 0, as for events that were never tried, so that they are sent in the order in which
 * they were made.
 */
const RELEASE_HELD = `
  UPDATE webhook_event SET state = 'pending', attempts = 0, due_at = 0
  WHERE (application_id, id) IN (
    SELECT event.application_id, event.id FROM application CROSS JOIN webhook_event AS event
    WHERE application.webhook_held_at IS NULL AND application.webhook_url IS NOT NULL AND application.disabled_at IS NULL
      AND event.application_id = application.id AND event.id IN (
        SELECT own.id FROM webhook_event AS own
        WHERE own.application_id = application.id AND own.state = 'held' AND own.state IN ('exhausted', 'held')
        ORDER BY own.id LIMIT ?1))`;

/**
 * Makes held events due again once their endpoint is released, oldest first.
 *
 * @param perApplication maximum number of events of one application
 * @returns how many events became due
 */
export function releaseHeldEvents(db: Database, perApplication: number): Promise<number> {
  return db.change(RELEASE_HELD, [perApplication]);
}
