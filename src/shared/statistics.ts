import { eq, type SQLWrapper, sql } from "drizzle-orm";
import type { BaseSQLiteDatabase, SQLiteColumn } from "drizzle-orm/sqlite-core";
import type * as z from "zod";
import { parseMetadata } from "./badge-life/view.ts";
import type { ApplicationId } from "./identifiers.ts";
import {
  OBSERVED_HOURS,
  STATISTICS_DAYS,
  STATISTICS_EVENTS_COUNTED,
  STATISTICS_SAMPLED_BADGES,
  STATISTICS_VALUES_SHOWN,
} from "./limits.ts";
import type { MetadataField } from "./metadata-fields.ts";
import type { statistics } from "./overview-responses.ts";
import {
  application,
  applicationHead,
  badge,
  type EventState,
  freedNumber,
  type HeadStatistics,
  observedLogins,
  webhookEvent,
} from "./schema.ts";
import { DAY_MILLISECONDS, HOUR_MILLISECONDS, isoTime } from "./time.ts";

/** What `GET /v1/stats` responds and `stats --json` of the administration script prints (contract section 19). */
export type Statistics = z.infer<typeof statistics>;

/** Application, freed numbers within the reuse delay, and logins of the last day by their tokens. */
export interface CountedApplication {
  applicationId: ApplicationId;
  name: string;
  firstNumber: number;
  lastNumber: number;
  counted: HeadStatistics;
  resting: number;
  logins: Statistics["logins"];
}

/** How many badges have this metadata, as JSON text. */
export interface MetadataCount {
  metadata: string | null;
  badges: number;
}

export interface DeliveryCount {
  state: EventState;
  outcome: string | null;
  events: number;
}

export function viewStatistics(
  { applicationId, name, firstNumber, lastNumber, counted, resting, logins }: CountedApplication,
  metadata: readonly MetadataCount[],
  deliveries: readonly DeliveryCount[],
  now: number,
): Statistics {
  const today = Math.floor(now / DAY_MILLISECONDS);
  const days = Array.from({ length: STATISTICS_DAYS }, (_, index) => today - STATISTICS_DAYS + 1 + index);
  const { from, counts } = counted.newBadges;
  const sampled = metadata.reduce((sum, { badges }) => sum + badges, 0);
  const parsed = metadata.map(({ metadata: text, badges }) => ({ fields: parseMetadata(text), badges }));
  const values = (field: MetadataField) => countValues(parsed, field, sampled);
  return {
    applicationId,
    name,
    numbers: viewNumbers({ firstNumber, lastNumber, counted, resting }),
    badges: {
      deviceModel: values("deviceModel"),
      os: values("os"),
      osVersion: values("osVersion"),
      sdkVersion: values("sdkVersion"),
    },
    sampled,
    invitations: counted.invitations,
    badgesByState: counted.badges,
    badgesPerDay: days.map((day) => ({ day: dayOf(day), badges: counts[day - from] ?? 0 })),
    deliveries: [...deliveries].sort((one, other) => other.events - one.events),
    logins,
    asOf: isoTime(now),
  };
}

/** `usedPercent` is rounded down, so it is 100 only when nothing is left. */
function viewNumbers({
  firstNumber,
  lastNumber,
  counted,
  resting,
}: Pick<CountedApplication, "firstNumber" | "lastNumber" | "counted" | "resting">): Statistics["numbers"] {
  const size = lastNumber - firstNumber + 1;
  const { retired } = counted;
  const badges = Object.values(counted.badges).reduce((sum, count) => sum + count, 0);
  const reserved = counted.invitations.pending;
  const used = Math.min(size, badges + reserved + resting);
  const usedPercent = Math.floor((used / size) * 1000) / 10;
  return { size, issued: badges - retired, reserved, retired, resting, left: size - used, used, usedPercent };
}

/** The most frequent values of a metadata field; null: not sent. */
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

/** Builds selects: Drizzle's D1 of the script, or that of the Worker's statements. */
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
      counted: applicationHead.statistics,
      lastPosition: applicationHead.lastPosition,
      resting:
        sql<number>`(SELECT count(*) FROM (SELECT 1 FROM ${freedNumber} WHERE ${freedNumber.applicationId} = ${id}
        AND ${freedNumber.freedAt} > ${now} - ${application.reuseAfterSeconds} * 1000
        LIMIT ${sql.raw(String(STATISTICS_EVENTS_COUNTED))}))`.as("resting"),
      withToken: logins(observedLogins.withToken).as("with_token"),
      withoutToken: logins(observedLogins.withoutToken).as("without_token"),
      withWrongToken: logins(observedLogins.withWrongToken).as("with_wrong_token"),
    })
    .from(application)
    .innerJoin(applicationHead, eq(applicationHead.applicationId, application.id))
    .where(sql`${application.id} = ${id}`);
};

/** Of the newest badges. @param after the place in the order of issue before theirs */
export const selectMetadata = (orm: Builder, id: Bound, after: Bound) =>
  orm
    .select({ metadata: badge.metadata, badges: sql<number>`count(*)`.as("badges") })
    .from(badge)
    .where(
      sql`${badge.applicationId} = ${id} AND (${badge.endedAt} IS NOT NULL) IN (0, 1) AND ${badge.position} IS NOT NULL
        AND ${badge.position} > ${after} AND ${badge.retiredAt} IS NULL`,
    )
    .groupBy(badge.metadata);

/** The place in the order of issue after which the newest badges are sampled. */
export const sampledAfter = (lastPosition: number): number => Math.max(0, lastPosition - STATISTICS_SAMPLED_BADGES);

/** The newest events: those of each state are counted up to a number. */
export const selectDeliveries = (orm: Builder, id: Bound) =>
  orm
    .select({
      state: sql<EventState>`state`.as("state"),
      outcome: sql<string | null>`last_outcome`.as("outcome"),
      events: sql<number>`count(*)`.as("events"),
    })
    .from(
      sql`(SELECT ${webhookEvent.state}, ${webhookEvent.lastOutcome} FROM ${webhookEvent} WHERE ${webhookEvent.applicationId} = ${id}
        ORDER BY ${webhookEvent.id} DESC LIMIT ${sql.raw(String(STATISTICS_EVENTS_COUNTED))})`,
    )
    .groupBy(sql`state`, sql`last_outcome`);
