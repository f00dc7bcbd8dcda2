import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { EVENT_STATES, EVENTS, type EventName, type EventState } from "../../shared/schema.ts";
import type { Database } from "./database.ts";

/** Events as an application's server sees them (contract section 19). */

/** Times are milliseconds. */
export interface EventRow {
  id: string;
  event: EventName;
  payload: string;
  state: EventState;
  attempts: number;
  /** When the next attempt is due, or if one is running, when it would be repeated should its result not come. */
  dueAt: number;
  lastStatus: number | null;
  lastOutcome: string | null;
  lastResponse: string | null;
  createdAt: number;
  deliveredAt: number | null;
}

/** Conditions for an application's pending events to be sent. */
export interface EndpointState {
  webhookUrl: string | null;
  heldAt: number | null;
  disabledAt: number | null;
}

const eventRows: z.ZodType<EventRow[]> = z.array(
  z.object({
    id: z.string(),
    event: z.enum(EVENTS),
    payload: z.string(),
    state: z.enum(EVENT_STATES),
    attempts: z.number(),
    dueAt: z.number(),
    lastStatus: z.number().nullable(),
    lastOutcome: z.string().nullable(),
    lastResponse: z.string().nullable(),
    createdAt: z.number(),
    deliveredAt: z.number().nullable(),
  }),
);

const endpointRows = z.array(
  z.object({ webhookUrl: z.string().nullable(), heldAt: z.number().nullable(), disabledAt: z.number().nullable() }),
);

const SELECT_ENDPOINT = `
  SELECT webhook_url AS webhookUrl, webhook_held_at AS heldAt, disabled_at AS disabledAt FROM application WHERE id = ?1`;

/** The state is a literal, not a parameter, so that SQLite can use the partial index of exhausted and held events. */
const selectEvents = (state: EventState | null): string => `
  SELECT id, event, payload, state, attempts, max(due_at, lease_until) AS dueAt, last_status AS lastStatus, last_outcome AS lastOutcome,
    last_response AS lastResponse, created_at AS createdAt, delivered_at AS deliveredAt
  FROM webhook_event
  WHERE application_id = ?1 AND id < ?2 ${state === null ? "" : `AND state = '${state}'`}
  ORDER BY id DESC LIMIT ?3`;

/**
 * An application's events, newest first. One round trip. Exhausted and held events have an index; for delivered and pending
 * ones, events in other states are read and skipped.
 *
 * @param before an event ID: only older events are listed
 */
export async function listEvents(
  db: Database,
  applicationId: ApplicationId,
  { state, before, limit }: { state: EventState | null; before: string; limit: number },
): Promise<{ events: EventRow[]; endpoint: EndpointState | undefined }> {
  const [events, endpoint] = await db.run((_, d1) =>
    d1.batch([
      d1.prepare(selectEvents(state)).bind(applicationId, before, limit),
      d1.prepare(SELECT_ENDPOINT).bind(applicationId),
    ]),
  );
  return { events: eventRows.parse(events?.results), endpoint: endpointRows.parse(endpoint?.results)[0] };
}

/** `due_at` -1: before all other events of its application, because somebody is waiting for it. */
const REPLAY = `
  UPDATE webhook_event SET
    state = iif((SELECT webhook_url IS NOT NULL AND webhook_held_at IS NULL FROM application WHERE id = ?1),
      'pending', 'held'),
    attempts = 0, due_at = -1, lease_until = 0, delivered_at = NULL
  WHERE application_id = ?1 AND id = ?2
  RETURNING state`;

const replayedRows = z.array(z.object({ state: z.enum(["pending", "held"]) }));

/**
 * Makes an event due at once with all its attempts ahead of it, whatever its state; held if the application has no endpoint
 * or a held one. It does not wait for a running attempt, so the receiver may get the event twice.
 *
 * @returns the event's new state; undefined if the application has no such event
 */
export async function replayEvent(
  db: Database,
  applicationId: ApplicationId,
  eventId: string,
): Promise<"pending" | "held" | undefined> {
  const { results } = await db.run((_, d1) => d1.prepare(REPLAY).bind(applicationId, eventId).all());
  return replayedRows.parse(results)[0]?.state;
}
