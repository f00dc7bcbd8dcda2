import { eq, type SQLWrapper, sql } from "drizzle-orm";
import type { BaseSQLiteDatabase, SQLiteColumn } from "drizzle-orm/sqlite-core";
import * as z from "zod";
import { parseMetadata } from "./badge-lifecycle/view.ts";
import type { HeadStatistics } from "./head-statistics.ts";
import type { ApplicationId } from "./identifiers.ts";
import {
  STATISTICS_COOLING_DOWN_COUNTED,
  STATISTICS_DAYS,
  STATISTICS_EVENTS_COUNTED,
  STATISTICS_SAMPLED_BADGES,
  STATISTICS_VALUES_SHOWN,
} from "./limits/statistics-limits.ts";
import { OBSERVED_HOURS } from "./limits/user-token-limits.ts";
import type { MetadataField } from "./metadata-fields.ts";
import {
  application,
  applicationHead,
  badge,
  type EventState,
  freedNumber,
  observedLogins,
  type RangeSegment,
  webhookEvent,
} from "./schema.ts";
import type { statistics } from "./statistics-response.ts";
import { DAY_MILLISECONDS, HOUR_MILLISECONDS, isoTime } from "./time.ts";

/** The response of `GET /v1/stats` and the output of the script's `stats --json`. */
export type Statistics = z.infer<typeof statistics>;

/** Application, freed numbers within the reuse delay, and logins of the last day by their tokens. */
interface CountedApplication {
  applicationId: ApplicationId;
  name: string;
  firstNumber: number;
  lastNumber: number;
  rangeSegments: readonly RangeSegment[];
  counted: HeadStatistics;
  pastDays: Record<string, number>;
  coolingDown: number;
  logins: Statistics["logins"];
}

/** How many badges have this metadata, as JSON text. */
interface MetadataCount {
  metadata: string | null;
  badges: number;
}

interface DeliveryCount {
  state: EventState;
  outcome: string | null;
  events: number;
}

export function viewStatistics(
  found: CountedApplication,
  metadata: readonly MetadataCount[],
  deliveries: readonly DeliveryCount[],
  now: number,
): Statistics {
  const { applicationId, name, counted, pastDays, logins } = found;
  const today = Math.floor(now / DAY_MILLISECONDS);
  const days = Array.from({ length: STATISTICS_DAYS }, (_, index) => today - STATISTICS_DAYS + 1 + index);
  const newBadges: Record<string, number> = { ...pastDays, [counted.newBadges.day]: counted.newBadges.count };
  const sampled = metadata.reduce((sum, { badges }) => sum + badges, 0);
  const parsed = metadata.map(({ metadata: text, badges }) => ({ fields: parseMetadata(text), badges }));
  const values = (field: MetadataField) => countValues(parsed, field, sampled);
  return {
    applicationId,
    name,
    numbers: viewNumbers(found),
    badges: {
      deviceModel: values("deviceModel"),
      os: values("os"),
      osVersion: values("osVersion"),
      sdkVersion: values("sdkVersion"),
    },
    sampled,
    invitations: counted.invitations,
    badgesByState: counted.badges,
    badgesPerDay: days.map((day) => ({ day: dayOf(day), badges: newBadges[day] ?? 0 })),
    deliveries: [...deliveries].sort((one, other) => other.events - one.events),
    logins,
    asOf: isoTime(now),
  };
}

/**
 * Numbers that were skipped or withdrawn are used, although no badge here has them. `usedPercent` is rounded down, so it is 100 only
 * when nothing is left.
 */
function viewNumbers({
  firstNumber,
  lastNumber,
  rangeSegments,
  counted,
  coolingDown,
}: CountedApplication): Statistics["numbers"] {
  const size = lastNumber - firstNumber + 1;
  const { retired } = counted;
  const badges = Object.values(counted.badges).reduce((sum, count) => sum + count, 0);
  const drawn = rangeSegments.reduce((sum, { used }) => sum + used, 0);
  const used = Math.min(size, drawn - counted.freed + coolingDown);
  const usedPercent = Math.floor((used / size) * 1000) / 10;
  const reserved = counted.invitations.pending;
  return { size, issued: badges - retired, reserved, retired, coolingDown, left: size - used, used, usedPercent };
}

/** The most frequent values of a metadata field; null for badges without it. */
function countValues(
  counted: readonly { fields: Record<string, string> | undefined; badges: number }[],
  field: MetadataField,
  sampled: number,
): Statistics["badges"]["os"] {
  const badgesOf = new Map<string | null, number>();
  for (const { fields, badges } of counted) {
    const value = fields?.[field] ?? null;
    badgesOf.set(value, (badgesOf.get(value) ?? 0) + badges);
  }
  const values = [...badgesOf]
    .map(([value, badges]) => ({ value, badges }))
    .sort((one, other) => other.badges - one.badges || compare(one.value, other.value))
    .slice(0, STATISTICS_VALUES_SHOWN);
  return { values, others: sampled - values.reduce((sum, { badges }) => sum + badges, 0) };
}

/** Values that were not sent come first. */
function compare(one: string | null, other: string | null): number {
  if (one === null || other === null) return Number(one !== null) - Number(other !== null);
  return one < other ? -1 : Number(one > other);
}

/** @param day days since 1970-01-01 */
const dayOf = (day: number): string => new Date(day * DAY_MILLISECONDS).toISOString().slice(0, 10);

/** The part of Drizzle that builds selects: the script runs them on D1, the Worker compiles them into statements. */
type Builder = Pick<BaseSQLiteDatabase<"async", unknown>, "select">;

/** A value, or the placeholder of one. */
type Bound = SQLWrapper | string | number;

/**
 * The queries of an application's statistics. They read at most 60,000 rows, however large the application. `now` is milliseconds.
 */
export const selectCounted = (orm: Builder, id: Bound, now: Bound) => {
  const logins = (column: SQLiteColumn) =>
    sql<number>`(SELECT coalesce(sum(${column}), 0) FROM ${observedLogins} WHERE ${observedLogins.applicationId} = ${id}
      AND ${observedLogins.hour} > ${now} / ${sql.raw(String(HOUR_MILLISECONDS))} - ${sql.raw(String(OBSERVED_HOURS))})`;
  return orm
    .select({
      name: application.name,
      firstNumber: application.firstNumber,
      lastNumber: application.lastNumber,
      rangeSegments: applicationHead.rangeSegments,
      counted: applicationHead.statistics,
      pastDays: applicationHead.pastDays,
      lastOrdinal: applicationHead.lastOrdinal,
      coolingDown:
        sql<number>`(SELECT count(*) FROM (SELECT 1 FROM ${freedNumber} WHERE ${freedNumber.applicationId} = ${id}
        AND ${freedNumber.freedAt} > ${now} - ${application.reuseAfterSeconds} * 1000
        LIMIT ${sql.raw(String(STATISTICS_COOLING_DOWN_COUNTED))}))`.as("cooling_down"),
      withToken: logins(observedLogins.withToken).as("with_token"),
      withoutToken: logins(observedLogins.withoutToken).as("without_token"),
      withWrongToken: logins(observedLogins.withWrongToken).as("with_wrong_token"),
    })
    .from(application)
    .innerJoin(applicationHead, eq(applicationHead.applicationId, application.id))
    .where(sql`${application.id} = ${id}`);
};

/**
 * Metadata of the newest badges, one row for each, because grouping would read every row twice.
 *
 * @param after the ordinal after which they were issued
 */
export const selectMetadata = (orm: Builder, id: Bound, after: Bound) =>
  orm
    .select({ metadata: badge.metadata })
    .from(badge)
    .where(
      sql`${badge.applicationId} = ${id} AND (${badge.endedAt} IS NOT NULL) IN (0, 1) AND ${badge.ordinal} IS NOT NULL
        AND ${badge.ordinal} > ${after} AND ${badge.supersededAt} IS NULL`,
    );

/** The ordinal after which the newest badges are sampled. */
export const sampledAfter = (lastOrdinal: number): number => Math.max(0, lastOrdinal - STATISTICS_SAMPLED_BADGES);

export function countMetadata(rows: readonly { metadata: string | null }[]): MetadataCount[] {
  const badges = new Map<string | null, number>();
  for (const { metadata } of rows) badges.set(metadata, (badges.get(metadata) ?? 0) + 1);
  return [...badges].map(([metadata, count]) => ({ metadata, badges: count }));
}

/**
 * Maximum of counted events per state: `STATISTICS_EVENTS_COUNTED`, and fewer if many numbers are cooling down, so that all
 * counts together read at most 60,000 rows.
 */
export const eventsCounted = (coolingDown: number): number => STATISTICS_EVENTS_COUNTED - Math.ceil(coolingDown / 4);

/**
 * Outcomes of events by state, each as one JSON text, because grouping would read every row twice. Delivered and
 * untried events are found among the newest events, and the others by the indexes of their states.
 *
 * @param limit of each
 */
export const selectDeliveries = (orm: Builder, id: Bound, limit: Bound) => {
  const { applicationId, id: eventId, state, lastOutcome, dueAt } = webhookEvent;
  const recorded = sql`json_group_array(${sql.identifier(lastOutcome.name)})`;
  const counted = (name: string, index: string, condition: SQLWrapper) => sql`
    SELECT ${sql.raw(`'${name}'`)} AS named, ${recorded} AS outcomes FROM (
      SELECT ${lastOutcome} FROM ${webhookEvent} INDEXED BY ${sql.raw(index)} WHERE ${applicationId} = ${id} AND ${condition}
      LIMIT ${limit})`;
  const newest = (name: string, condition: SQLWrapper) => sql`
    ${recorded} FILTER (WHERE ${condition}) AS ${sql.raw(name)}`;
  const stopped = (name: string) => sql`${state} = ${sql.raw(`'${name}'`)} AND ${state} IN ('exhausted', 'held')`;
  // Columns of the newest events: the subquery has no name.
  const [newState, newDueAt] = [sql.identifier(state.name), sql.identifier(dueAt.name)];
  const untried = sql`${newState} = 'pending' AND ${newDueAt} IS NULL`;
  return orm
    .select({ state: sql<EventState>`named`.as("named"), outcomes: sql<string>`outcomes`.as("outcomes") })
    .from(sql`(
      WITH newest AS MATERIALIZED (
        SELECT ${newest("delivered", sql`${newState} = 'delivered'`)}, ${newest("untried", untried)}
        FROM (SELECT ${state}, ${lastOutcome}, ${dueAt} FROM ${webhookEvent} WHERE ${applicationId} = ${id}
          ORDER BY ${eventId} DESC LIMIT ${limit}))
      SELECT 'delivered' AS named, delivered AS outcomes FROM newest
      UNION ALL SELECT 'pending', untried FROM newest
      UNION ALL ${counted("pending", "webhook_event_due", sql`${state} = 'pending' AND ${dueAt} IS NOT NULL`)}
      UNION ALL ${counted("exhausted", "webhook_event_stopped", stopped("exhausted"))}
      UNION ALL ${counted("held", "webhook_event_stopped", stopped("held"))})`);
};

const outcomes = z.array(z.string().nullable());

export function countDeliveries(rows: readonly { state: EventState; outcomes: string }[]): DeliveryCount[] {
  const counts = new Map<string, DeliveryCount>();
  for (const { state, outcomes: json } of rows) {
    for (const outcome of outcomes.parse(JSON.parse(json))) {
      const key = `${state} ${outcome}`;
      const count = counts.get(key) ?? { state, outcome, events: 0 };
      count.events++;
      counts.set(key, count);
    }
  }
  return [...counts.values()];
}
