import { and, count, eq, gt, gte, isNull, lte, or, sql } from "drizzle-orm";
import { application, applicationHead, webhookEvent } from "../../shared/schema.ts";
import type { Orm } from "../platform/database.ts";

/** What the doctor asks the database of each home. */

const ofApplication = eq(applicationHead.applicationId, application.id);

/**
 * Counts events that have been due since before a moment, and events that are held or exhausted. Events that were tried before and
 * then replayed or released wait for their turn. Both indexes have only undelivered events, which are few.
 */
export function countDeliveries(orm: Orm, dueBefore: number) {
  const { applicationId, state, dueAt, createdAt, lastOutcome } = webhookEvent;
  const overdue = orm
    .select({ events: count() })
    .from(sql`${webhookEvent} INDEXED BY webhook_event_due`)
    .innerJoin(application, eq(application.id, applicationId))
    .where(
      and(
        sql`${state} = 'pending'`,
        lte(dueAt, dueBefore),
        isNull(application.disabledAt),
        lte(createdAt, dueBefore),
        or(gt(dueAt, 0), isNull(lastOutcome)),
      ),
    );
  return orm
    .select({
      overdue: sql<number>`${overdue}`,
      held: sql<number>`count(*) FILTER (WHERE ${state} = 'held')`,
      // A failed test needs no further attempt.
      exhausted: sql<number>`count(*) FILTER (WHERE ${state} = 'exhausted' AND ${webhookEvent.event} <> 'webhook:test')`,
    })
    .from(sql`${webhookEvent} INDEXED BY webhook_event_stopped`)
    .where(sql`${state} IN ('exhausted', 'held')`);
}

/** Enabled applications with what their allocators have used of their ranges. Counting their badges would read every badge. */
export const selectRanges = (orm: Orm) =>
  orm
    .select({
      id: application.id,
      name: application.name,
      firstNumber: application.firstNumber,
      lastNumber: application.lastNumber,
      segments: applicationHead.rangeSegments,
      counted: applicationHead.statistics,
    })
    .from(application)
    .innerJoin(applicationHead, ofApplication)
    .where(isNull(application.disabledAt));

/** Applications that have used up a clock hour's numbers (hours since 1970-01-01 UTC; contract section 7). */
export const selectHourlyLimitsReached = (orm: Orm, hour: number) =>
  orm
    .select({ id: application.id, name: application.name, limit: sql<number>`${application.newBadgesPerHour}` })
    .from(application)
    .innerJoin(applicationHead, ofApplication)
    .where(
      and(
        isNull(application.disabledAt),
        eq(applicationHead.hour, hour),
        gte(applicationHead.hourUsed, application.newBadgesPerHour),
      ),
    );

/** Applications whose allocators have the log only since a later moment: there was no room for more (contract section 21). */
export const selectShortLogs = (orm: Orm, since: number) =>
  orm
    .select({ id: application.id, name: application.name, since: sql<number>`${applicationHead.logSince}` })
    .from(application)
    .innerJoin(applicationHead, ofApplication)
    .where(gt(applicationHead.logSince, since));
