import { type SQL, sql } from "drizzle-orm";
import { type ApplicationId, eventIdPrefix } from "../../shared/identifiers.ts";
import { LEASE_AGE_MILLISECONDS } from "../../shared/limits/sweep-limits.ts";
import { DELIVERY_LEASE_SECONDS, DELIVERY_LEASE_SPREAD_MILLISECONDS } from "../../shared/limits/webhook-limits.ts";
import { application, applicationSecret, webhookEvent } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { isOfReadable } from "./readable.ts";
import { columnName, eachOf, type Placeholders, query, type RowOfStatement, statement } from "./statement.ts";

export interface EventId {
  applicationId: ApplicationId;
  eventId: string;
}

interface LeaseValues {
  /** Pairs of application ID and event ID. */
  ids: readonly (readonly [ApplicationId, string])[];
  /** Milliseconds. */
  now: number;
  leaseUntil: number;
  /** Whether an earlier try may have leased events. */
  isRepeated: number;
  /** Prefix of IDs: untried events from it on take no lease. */
  unleasedFrom: string;
}

type Ids = Pick<Placeholders<LeaseValues>, "ids">;

const { state, dueAt, leaseUntil, lastOutcome } = webhookEvent;

const isInBatch = ({ ids }: Ids): SQL =>
  sql`(${webhookEvent.applicationId}, ${webhookEvent.id}) IN (SELECT value ->> 0, value ->> 1 FROM ${eachOf(ids)})`;

const isPending = sql`${state} = 'pending'`;

/** Disabled applications' events wait. */
const isEnabled = (more: SQL = sql`true`): SQL =>
  sql`EXISTS (SELECT 1 FROM ${application} WHERE ${application.id} = ${webhookEvent.applicationId}
    AND ${application.disabledAt} IS NULL AND ${more})`;

const isDue = ({ now }: Pick<Placeholders<LeaseValues>, "now">): SQL =>
  sql`(${dueAt} IS NULL OR ${dueAt} <= ${now}) AND ${leaseUntil} <= ${now}`;

/**
 * Holds due events whose endpoint is missing or held. Test events are sent to a held endpoint too, to find out whether
 * it works again. Without a URL they are exhausted.
 */
const HOLD = statement((p: Placeholders<Pick<LeaseValues, "ids" | "now">>) => {
  const isTest = sql`${webhookEvent.event} = 'webhook:test'`;
  const hasNoEndpoint = sql`(${application.webhookUrl} IS NULL
    OR ${application.webhookHeldAt} IS NOT NULL AND NOT ${isTest})`;
  return sql`UPDATE ${webhookEvent} SET ${columnName(state)} = iif(${isTest}, 'exhausted', 'held'),
      ${columnName(lastOutcome)} = iif(${isTest}, 'no-url', ${lastOutcome})
    WHERE ${isInBatch(p)} AND ${isPending} AND ${isDue(p)} AND ${isEnabled(hasNoEndpoint)}`;
});

const FIELDS = {
  applicationId: webhookEvent.applicationId,
  eventId: webhookEvent.id,
  event: webhookEvent.event,
  payload: webhookEvent.payload,
  attempts: webhookEvent.attempts,
  dueAt,
  leaseUntil,
};

/**
 * An untried event is leased only if its first attempt could still be under way when a tick finds it: a lease is a second written
 * row, and most events are sent at once. Two messages for one event are rare, and a receiver recognizes a repeated event by its ID
 * (contract section 8).
 *
 * Events wait while D1 lacks changes after a restore: one may have been put back that names a person who was erased since (contract
 * section 24).
 *
 * Compare-and-set: of two messages for one event, the second finds it leased. A repeated try also finds the events that the
 * earlier one leased, by the end of their lease.
 */
const LEASE = statement((p: Placeholders<LeaseValues>) =>
  query(
    FIELDS,
    (fields) => sql`UPDATE ${webhookEvent} SET ${columnName(leaseUntil)} = ${p.leaseUntil}
      WHERE ${isInBatch(p)} AND ${isPending}
        AND (${dueAt} <= ${p.now} OR ${dueAt} IS NULL AND ${webhookEvent.id} < ${p.unleasedFrom})
        AND (${leaseUntil} <= ${p.now} OR ${p.isRepeated} AND ${leaseUntil} = ${p.leaseUntil})
        AND ${isEnabled()} AND ${isOfReadable(webhookEvent.applicationId)}
      RETURNING ${fields}`,
  ),
);

const SELECT_UNLEASED = statement((p: Placeholders<Pick<LeaseValues, "ids" | "unleasedFrom">>) =>
  query(
    FIELDS,
    (fields) => sql`SELECT ${fields} FROM ${webhookEvent}
      WHERE ${isInBatch(p)} AND ${isPending} AND ${dueAt} IS NULL AND ${webhookEvent.id} >= ${p.unleasedFrom}
        AND ${isEnabled()}`,
  ),
);

/** An event to send. No other sender takes it before its lease ends, if it has one. */
export type LeasedEvent = RowOfStatement<typeof LEASE>;

interface Secret {
  id: string;
  sealed: string;
  sealingVersion: number;
}

const SELECT_ENDPOINTS = statement(({ ids }: Placeholders<Pick<LeaseValues, "ids">>) => {
  const secret = applicationSecret;
  const { id, sealed, sealingVersion } = secret;
  const secrets = sql`(SELECT json_group_array(
      json_object('id', ${id}, 'sealed', ${sealed}, 'sealingVersion', ${sealingVersion}) ORDER BY ${secret.role} = 'current' DESC)
    FROM ${secret} WHERE ${secret.applicationId} = ${application.id})`;
  const fields = {
    applicationId: application.id,
    url: sql<string>`${application.webhookUrl}`,
    heldAt: application.webhookHeldAt,
    /** The current one first. */
    secrets: secrets.mapWith((json): Secret[] => JSON.parse(String(json))),
  };
  return query(
    fields,
    (selected) => sql`SELECT ${selected} FROM ${application}
      WHERE ${application.id} IN (SELECT value ->> 0 FROM ${eachOf(ids)}) AND ${application.webhookUrl} IS NOT NULL`,
  );
});

/** An application's webhook endpoint. */
export type Endpoint = RowOfStatement<typeof SELECT_ENDPOINTS>;

/**
 * Takes due events, and loads their endpoints. Events with a due time and late untried ones are leased; the others are only
 * read. Events of a disabled application stay unchanged, and due ones while D1 lacks changes. One round trip.
 *
 * @param random in [0, 1): varies the end of the lease, so that a repeated try recognizes its own leases and need not
 * wait for their end
 * @returns the events oldest first
 * @throws Unavailable
 */
export async function leaseEvents(
  db: Database,
  events: readonly EventId[],
  { now, random }: { now: number; random: number },
): Promise<{ events: LeasedEvent[]; endpoints: Map<ApplicationId, Endpoint> }> {
  const ids = idsOf(events);
  const spread = Math.floor(random * DELIVERY_LEASE_SPREAD_MILLISECONDS);
  const leaseUntil = now + DELIVERY_LEASE_SECONDS * 1000 + spread;
  const unleasedFrom = eventIdPrefix(now - LEASE_AGE_MILLISECONDS);
  let tries = 0;
  const [, leased, unleased, endpoints] = await db.run((d1) => {
    const isRepeated = tries++ > 0 ? 1 : 0;
    return d1.batch([
      HOLD.bind(d1, { ids, now }),
      LEASE.bind(d1, { ids, now, leaseUntil, isRepeated, unleasedFrom }),
      SELECT_UNLEASED.bind(d1, { ids, unleasedFrom }),
      SELECT_ENDPOINTS.bind(d1, { ids }),
    ]);
  });
  return {
    // SQLite does not define the order of RETURNING.
    events: [...LEASE.rows(leased), ...SELECT_UNLEASED.rows(unleased)].sort((one, other) =>
      one.eventId < other.eventId ? -1 : 1,
    ),
    endpoints: new Map(SELECT_ENDPOINTS.rows(endpoints).map((endpoint) => [endpoint.applicationId, endpoint])),
  };
}

const MARK_DEAD_LETTERED = statement(
  (p: Placeholders<Pick<LeaseValues, "ids">>) =>
    sql`UPDATE ${webhookEvent} SET ${columnName(lastOutcome)} = 'dead-lettered'
      WHERE ${isInBatch(p)} AND ${isPending}`,
);

/** Records that events' messages reached the dead-letter queue. They stay pending, so the tick finds them. One round trip. */
export async function markDeadLettered(db: Database, events: readonly EventId[]): Promise<void> {
  await db.write(MARK_DEAD_LETTERED, { ids: idsOf(events) });
}

const idsOf = (events: readonly EventId[]): LeaseValues["ids"] =>
  events.map(({ applicationId, eventId }) => [applicationId, eventId]);
