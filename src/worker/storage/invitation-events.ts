import { eventIdPrefix } from "../../shared/identifiers.ts";
import { isSubscribedTo, NEW_EVENT_STATE } from "../../shared/storage/outbox.ts";
import { type EventId, eventIdRows } from "./webhook-events.ts";

/** The event of a pending invitation that ends now (`?1`). */
const EVENT = "'invitation:' || iif(ending.expires_at_time <= ?1, 'expired', 'revoked')";

/**
 * Records the events of pending invitations that are about to end (contract section 18), for applications that subscribe to
 * them. It is the first statement of the transaction that ends them, because it must see which ones are still pending. The
 * event IDs are made in SQL, since only the statement knows how many it needs: the time and 64 random bits. MATERIALIZED
 * keeps SQLite from drawing new random bits wherever the ID is used.
 *
 * @param ending a SELECT of rows of `invitation`; its own parameters start at `?4`
 */
export function insertEndEvents(
  d1: D1Database,
  now: number,
  { ending, parameters }: { ending: string; parameters: readonly unknown[] },
): D1PreparedStatement {
  const sql = `
    WITH ended AS MATERIALIZED (
      SELECT ending.application_id AS application_id, ending.number AS number, ending.expires_at AS expires_at,
        ${EVENT} AS event, ?2 || lower(hex(randomblob(8))) AS id,
        ${NEW_EVENT_STATE} AS state
      FROM (${ending}) AS ending
      JOIN application ON application.id = ending.application_id AND ${isSubscribedTo(EVENT)}
    )
    INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
    SELECT application_id, id, event, json_object('id', id, 'event', event, 'createdAt', ?3,
      'data', json_object('id', CAST(number AS TEXT), 'expiresAt', expires_at)), state, 0, ?1
    FROM ended
    RETURNING application_id, id`;
  return d1.prepare(sql).bind(now, eventIdPrefix(now), new Date(now).toISOString(), ...parameters);
}

/** IDs of the events that `insertEndEvents` recorded. */
export const recordedEvents = (result: D1Result | undefined): EventId[] => eventIdRows.parse(result?.results ?? []);
