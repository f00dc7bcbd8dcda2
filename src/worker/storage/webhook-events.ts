import * as z from "zod";
import { EVENTS, type EventName } from "../../shared/events.ts";
import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import { DELIVERY_LEASE_SECONDS, DELIVERY_LEASE_SPREAD_MILLISECONDS } from "../../shared/limits.ts";
import type { Database } from "./database.ts";

export interface EventId {
  applicationId: ApplicationId;
  eventId: string;
}

/** Rows of SQL that name an event by `application_id` and `id`. */
export const eventIdRow = z
  .object({ application_id: applicationId, id: z.string() })
  .transform(({ application_id: applicationId, id: eventId }): EventId => ({ applicationId, eventId }));

/** An event leased to one sender; no other sends it before the lease ends. */
export interface ClaimedEvent extends EventId {
  event: EventName;
  payload: string;
  attempts: number;
  /** End of the lease in milliseconds. It also identifies the holder. */
  leaseUntil: number;
}

/** An application's webhook endpoint and its health. Times are milliseconds. */
export interface Endpoint {
  applicationId: ApplicationId;
  url: string;
  failingSince: number | null;
  failures: number;
  heldAt: number | null;
  /** The current one first. */
  secrets: { id: string; sealed: string; sealingVersion: number }[];
}

/** Rows whose keys are in the JSON parameter: pairs of application ID and event ID. */
const IS_ASKED = "(application_id, id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?1))";

/**
 * Holds due events that have no endpoint, or one that is held; those of a disabled application wait. Test events are sent
 * to a held endpoint too, to find out whether it works again; without a URL they are exhausted.
 */
const HOLD = `
  UPDATE webhook_event SET
    state = iif(event = 'webhook:test', 'exhausted', 'held'),
    last_outcome = iif(event = 'webhook:test', 'no-url', last_outcome)
  WHERE ${IS_ASKED} AND state = 'pending' AND due_at <= ?2 AND lease_until <= ?2
    AND EXISTS (SELECT 1 FROM application WHERE application.id = webhook_event.application_id
      AND application.disabled_at IS NULL AND (application.webhook_url IS NULL
        OR application.webhook_held_at IS NOT NULL AND webhook_event.event <> 'webhook:test'))`;

/**
 * Compare-and-set: of two messages for one event, the second finds it leased. `?4` is set when the statement is retried:
 * then it also finds the events that the earlier try claimed, by the end of their lease.
 */
const CLAIM = `
  UPDATE webhook_event SET lease_until = ?3
  WHERE ${IS_ASKED} AND state = 'pending' AND due_at <= ?2 AND (lease_until <= ?2 OR ?4 AND lease_until = ?3)
    AND EXISTS (SELECT 1 FROM application WHERE application.id = webhook_event.application_id AND disabled_at IS NULL)
  RETURNING application_id, id, event, payload, attempts, lease_until`;

const SELECT_ENDPOINTS = `
  SELECT application.id AS application_id, webhook_url, webhook_failing_since, webhook_failures, webhook_held_at,
    (SELECT json_group_array(json_object('id', id, 'sealed', sealed, 'sealingVersion', sealing_version) ORDER BY role = 'current' DESC)
      FROM application_secret WHERE application_secret.application_id = application.id) AS secrets
  FROM application
  WHERE application.id IN (SELECT value ->> 0 FROM json_each(?1)) AND webhook_url IS NOT NULL`;

const claimedRows = z.array(
  z.object({
    application_id: applicationId,
    id: z.string(),
    event: z.enum(EVENTS),
    payload: z.string(),
    attempts: z.number(),
    lease_until: z.number(),
  }),
);

/** Oldest first: SQLite does not define the order of RETURNING. */
function parseClaimed(results: unknown): ClaimedEvent[] {
  return claimedRows
    .parse(results)
    .sort((one, other) => (one.id < other.id ? -1 : 1))
    .map(({ application_id: applicationId, id: eventId, lease_until: leaseUntil, event, payload, attempts }) => ({
      applicationId,
      eventId,
      leaseUntil,
      event,
      payload,
      attempts,
    }));
}

const secretRows = z.array(z.object({ id: z.string(), sealed: z.string(), sealingVersion: z.number() }));

const endpointRows = z.array(
  z
    .object({
      application_id: applicationId,
      webhook_url: z.string(),
      webhook_failing_since: z.number().nullable(),
      webhook_failures: z.number(),
      webhook_held_at: z.number().nullable(),
      secrets: z.string().transform((text) => secretRows.parse(JSON.parse(text))),
    })
    .transform((row) => ({
      applicationId: row.application_id,
      url: row.webhook_url,
      failingSince: row.webhook_failing_since,
      failures: row.webhook_failures,
      heldAt: row.webhook_held_at,
      secrets: row.secrets,
    })),
);

/**
 * Claims the events that are due, and loads their endpoints. One round trip. Events of a disabled application stay as they
 * are.
 *
 * @param random in [0, 1): varies the end of the lease, so that a retried claim recognizes the events it has claimed and
 *   they need not wait for the lease to end
 * @returns the events oldest first
 */
export async function claimEvents(
  db: Database,
  ids: readonly EventId[],
  { now, random }: { now: number; random: number },
): Promise<{ events: ClaimedEvent[]; endpoints: Map<string, Endpoint> }> {
  const asked = JSON.stringify(ids.map(({ applicationId, eventId }) => [applicationId, eventId]));
  const leaseUntil = now + DELIVERY_LEASE_SECONDS * 1000 + Math.floor(random * DELIVERY_LEASE_SPREAD_MILLISECONDS);
  let tries = 0;
  const [, claimed, endpoints] = await db.run((d1) => {
    const isRepeated = tries++ > 0;
    return d1.batch([
      d1.prepare(HOLD).bind(asked, now),
      d1.prepare(CLAIM).bind(asked, now, leaseUntil, isRepeated ? 1 : 0),
      d1.prepare(SELECT_ENDPOINTS).bind(asked),
    ]);
  });
  const rows = endpointRows.parse(endpoints?.results);
  return {
    events: parseClaimed(claimed?.results),
    endpoints: new Map(rows.map((endpoint) => [endpoint.applicationId, endpoint])),
  };
}

const MARK_DEAD_LETTERED = `
  UPDATE webhook_event SET last_outcome = 'dead-lettered' WHERE application_id = ?1 AND id = ?2 AND state = 'pending'`;

/** Records that an event's wake-up reached the dead-letter queue. The event stays due, so the sweep finds it. */
export async function markDeadLettered(db: Database, { applicationId, eventId }: EventId): Promise<void> {
  await db.change(MARK_DEAD_LETTERED, [applicationId, eventId]);
}
