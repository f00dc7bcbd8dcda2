import { type SQL, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { application, type EventState, webhookEvent } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { eachOf, type Placeholders, statement } from "./statement.ts";
import type { Endpoint, EndpointHealth, LeasedEvent } from "./webhook-events.ts";

/** An attempt and its consequence, as stored. Times are milliseconds. */
export interface CompletedAttempt {
  event: LeasedEvent;
  status: number | null;
  /** Such as `timeout`. */
  outcome: string;
  /** The part of the response that is stored, for lists of events. */
  response: string | null;
  milliseconds: number;
  state: EventState;
  /** Time of the next attempt; null if the due time is unchanged. */
  dueAt: number | null;
  deliveredAt: number | null;
}

const nameOf = ({ name }: { name: string }): SQL => sql.identifier(name).getSQL();

/** A field of the attempt in the JSON array. */
const made = (member: string): SQL => sql`made.value ->> ${sql.raw(`'${member}'`)}`;

/**
 * A success counts from any sender, so that no attempt follows it. A failure counts only if the event was not leased,
 * tried or replayed since. The response is dropped if the user was erased meanwhile, because it may repeat the payload.
 */
const RECORD_ATTEMPTS = statement((p: Placeholders<{ attempts: readonly object[] }>) => {
  const event = webhookEvent;
  return sql`UPDATE ${event} SET
      ${nameOf(event.state)} = ${made("state")},
      ${nameOf(event.attempts)} = ${made("attempts")},
      ${nameOf(event.dueAt)} = coalesce(${made("dueAt")}, ${event.dueAt}),
      ${nameOf(event.leaseUntil)} = 0,
      ${nameOf(event.deliveredAt)} = coalesce(${made("deliveredAt")}, ${event.deliveredAt}),
      ${nameOf(event.lastStatus)} = ${made("status")},
      ${nameOf(event.lastOutcome)} = ${made("outcome")},
      ${nameOf(event.lastResponse)} = iif(${event.payload} = ${made("payload")}, ${made("response")}, NULL),
      ${nameOf(event.lastMilliseconds)} = ${made("milliseconds")}
    FROM ${eachOf(p.attempts)} AS made
    WHERE ${event.applicationId} = ${made("applicationId")} AND ${event.id} = ${made("eventId")}
      AND iif(${made("state")} = 'delivered', ${event.state} <> 'delivered', ${event.state} = 'pending'
        AND ${event.leaseUntil} = ${made("leaseUntil")} AND ${event.dueAt} IS ${made("dueBefore")})`;
});

interface HealthValues extends EndpointHealth {
  applicationId: ApplicationId;
  url: string;
  failuresBefore: number;
  failingSinceBefore: number | null;
  heldBefore: number | null;
  /** Whether the receiver responded 410. */
  isGone: number;
}

/**
 * A 410 holds an endpoint that is not held yet. A success is written unless the endpoint was held since the attempts began. Any
 * other failure is written only if the health has not changed since then, because a later attempt may have succeeded. Nothing is
 * written if the application's URL has changed.
 */
const RECORD_HEALTH = statement((p: Placeholders<HealthValues>) => {
  const { webhookFailingSince, webhookFailures, webhookHeldAt } = application;
  return sql`UPDATE ${application} SET ${nameOf(webhookFailingSince)} = ${p.failingSince},
      ${nameOf(webhookFailures)} = ${p.failures}, ${nameOf(webhookHeldAt)} = ${p.heldAt}
    WHERE ${application.id} = ${p.applicationId} AND ${application.webhookUrl} = ${p.url}
      AND (${p.failures} = 0 AND (${webhookHeldAt} IS NULL OR ${webhookHeldAt} = ${p.heldBefore})
        OR ${webhookHeldAt} IS NULL AND (${p.isGone}
          OR ${webhookFailures} = ${p.failuresBefore} AND ${webhookFailingSince} IS ${p.failingSinceBefore}))`;
});

/**
 * Records attempts at one endpoint that ended together, and its health after them, in one transaction.
 *
 * @param health `endpoint`: as it was before the attempts; `after`: its health after them; `isGone`: the receiver responded 410
 * @throws Unavailable
 */
export async function recordAttempts(
  db: Database,
  attempts: readonly CompletedAttempt[],
  { endpoint, after, isGone }: { endpoint: Endpoint; after: EndpointHealth; isGone: boolean },
): Promise<void> {
  const rows = attempts.map(({ event, ...attempt }) => ({
    applicationId: event.applicationId,
    eventId: event.eventId,
    payload: event.payload,
    leaseUntil: event.leaseUntil,
    dueBefore: event.dueAt,
    attempts: event.attempts + 1,
    ...attempt,
  }));
  const { applicationId, url, failures, failingSince, heldAt } = endpoint;
  const before = { failuresBefore: failures, failingSinceBefore: failingSince, heldBefore: heldAt };
  const health = { applicationId, url, ...before, isGone: isGone ? 1 : 0, ...after };
  // True for a success of a healthy endpoint.
  const isUnchanged = after.failures === failures && after.heldAt === heldAt;
  await db.run((d1) =>
    d1.batch([RECORD_ATTEMPTS.bind(d1, { attempts: rows }), ...(isUnchanged ? [] : [RECORD_HEALTH.bind(d1, health)])]),
  );
}
