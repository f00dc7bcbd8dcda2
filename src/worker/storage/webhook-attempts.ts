import { type SQL, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { application, type EventState, webhookEvent } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { columnName, eachOf, type Placeholders, statement } from "./statement.ts";
import type { Endpoint, LeasedEvent } from "./webhook-events.ts";

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

/** A field of the attempt in the JSON array. */
const made = (member: string): SQL => sql`made.value ->> ${sql.raw(`'${member}'`)}`;

/**
 * A success counts from any sender, so that no attempt follows it. A failure counts only if the event was not leased,
 * tried or replayed since. The due time 0 that a tick gives to an untried event does not count as a change. The response is dropped if
 * the user was erased meanwhile, because it may repeat the payload.
 */
const RECORD_ATTEMPTS = statement((p: Placeholders<{ attempts: readonly object[] }>) => {
  const event = webhookEvent;
  return sql`UPDATE ${event} SET
      ${columnName(event.state)} = ${made("state")},
      ${columnName(event.attempts)} = ${made("attempts")},
      ${columnName(event.dueAt)} = coalesce(${made("dueAt")}, ${event.dueAt}),
      ${columnName(event.leaseUntil)} = 0,
      ${columnName(event.deliveredAt)} = coalesce(${made("deliveredAt")}, ${event.deliveredAt}),
      ${columnName(event.lastStatus)} = ${made("status")},
      ${columnName(event.lastOutcome)} = ${made("outcome")},
      ${columnName(event.lastResponse)} = iif(${event.payload} = ${made("payload")}, ${made("response")}, NULL),
      ${columnName(event.lastMilliseconds)} = ${made("milliseconds")}
    FROM ${eachOf(p.attempts)} AS made
    WHERE ${event.applicationId} = ${made("applicationId")} AND ${event.id} = ${made("eventId")}
      AND iif(${made("state")} = 'delivered', ${event.state} <> 'delivered', ${event.state} = 'pending'
        AND ${event.leaseUntil} = ${made("leaseUntil")} AND coalesce(${event.dueAt}, 0) = ${made("dueBefore")})`;
});

/** When an endpoint's hold began before and after a change, in milliseconds; null for none. */
export interface HoldChange {
  from: number | null;
  to: number | null;
}

interface HoldValues extends HoldChange {
  applicationId: ApplicationId;
  url: string;
}

/** Changes nothing if there is another hold by now, or another URL. */
const CHANGE_HOLD = statement((p: Placeholders<HoldValues>) => {
  const { id, webhookUrl, webhookHeldAt } = application;
  return sql`UPDATE ${application} SET ${columnName(webhookHeldAt)} = ${p.to}
    WHERE ${id} = ${p.applicationId} AND ${webhookUrl} = ${p.url} AND ${webhookHeldAt} IS ${p.from}`;
});

/**
 * Records a batch of attempts at one endpoint, and the change of its hold, in one transaction.
 *
 * @throws Unavailable
 */
export async function recordAttempts(
  db: Database,
  attempts: readonly CompletedAttempt[],
  { applicationId, url }: Pick<Endpoint, "applicationId" | "url">,
  hold: HoldChange | null,
): Promise<void> {
  const rows = attempts.map(({ event, ...attempt }) => ({
    applicationId: event.applicationId,
    eventId: event.eventId,
    payload: event.payload,
    leaseUntil: event.leaseUntil,
    dueBefore: event.dueAt ?? 0,
    attempts: event.attempts + 1,
    ...attempt,
  }));
  await db.run((d1) =>
    d1.batch([
      RECORD_ATTEMPTS.bind(d1, { attempts: rows }),
      ...(hold ? [CHANGE_HOLD.bind(d1, { applicationId, url, ...hold })] : []),
    ]),
  );
}
