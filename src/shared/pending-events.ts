import { type Placeholder, type SQL, sql } from "drizzle-orm";
import type { ApplicationId } from "./identifiers.ts";
import { heartbeat, webhookEvent } from "./schema.ts";

/**
 * An application's pending events, of which no index has all: those with a due time are in `webhook_event_due`, those without are
 * among the newest (`untriedFrom` in schema.ts).
 */

type BoundApplicationId = ApplicationId | Placeholder<string, ApplicationId>;

const event = webhookEvent;

const withDueTime = (applicationId: BoundApplicationId): SQL =>
  sql`FROM ${event} INDEXED BY webhook_event_due WHERE ${event.applicationId} = ${applicationId}
    AND ${event.state} = 'pending' AND ${event.dueAt} IS NOT NULL`;

const newest = (applicationId: BoundApplicationId): SQL =>
  sql`FROM ${event} WHERE ${event.applicationId} = ${applicationId}
    AND ${event.id} >= coalesce((SELECT ${heartbeat.untriedFrom} FROM ${heartbeat} WHERE ${heartbeat.id} = 1), '')`;

/** Selects the IDs of an application's pending events. */
export const pendingEventIds = (applicationId: BoundApplicationId): SQL =>
  sql`SELECT ${event.id} ${withDueTime(applicationId)}
    UNION ALL SELECT ${event.id} ${newest(applicationId)} AND ${event.state} = 'pending' AND ${event.dueAt} IS NULL`;

/**
 * The number of rows that `pendingEventIds` reads, counted up to `limit` of each kind.
 *
 * @param limit a number, or a placeholder for one
 */
export const pendingEventRows = (
  applicationId: BoundApplicationId,
  limit: number | Placeholder<string, number>,
): SQL<number> =>
  sql<number>`(SELECT count(*) FROM (SELECT 1 ${withDueTime(applicationId)} LIMIT ${limit}))
    + (SELECT count(*) FROM (SELECT 1 ${newest(applicationId)} LIMIT ${limit}))`;
