import {
  MAX_CACHED_STATISTICS,
  STATISTICS_CACHE_SECONDS,
  STATISTICS_DAYS,
  STATISTICS_VALUES_SHOWN,
} from "../../shared/limits.ts";
import type { MetadataField } from "../../shared/metadata-fields.ts";
import type { BadgeState } from "../badges/states.ts";
import { BoundedCache } from "../bounded-cache.ts";
import type { Context } from "../context.ts";
import { Refusal } from "../refusal.ts";
import type { InvitationState } from "../storage/invitation-list.ts";
import { findSettings } from "../storage/settings.ts";
import { type Counts, readCounts } from "../storage/statistics.ts";

interface ValueCount {
  /** Null: the device did not say. */
  value: string | null;
  badges: number;
}

/** What `stats --json` of the administration script prints, and what charts need (contract section 19). */
export interface Statistics {
  applicationId: string;
  name: string;
  numbers: {
    size: number;
    issued: number;
    reserved: number;
    retired: number;
    resting: number;
    left: number;
    used: number;
    usedPercent: number;
  };
  badges: Record<MetadataField, { values: ValueCount[]; others: number }>;
  invitations: Record<InvitationState, number>;
  badgesByState: Record<BadgeState, number>;
  /** One entry a day in UTC, oldest first, today last. */
  badgesPerDay: { day: string; badges: number }[];
  /** Most frequent first. `outcome` is the last one; null: not tried yet. */
  deliveries: { state: string; outcome: string | null; events: number }[];
  /** When this was counted. */
  asOf: string;
}

/**
 * Statistics by application. Counting reads all rows of an application, so an isolate keeps what it has counted for
 * `STATISTICS_CACHE_SECONDS`.
 */
export class CountedStatistics extends BoundedCache<{ statistics: Statistics; at: number }> {
  constructor() {
    super(MAX_CACHED_STATISTICS);
  }
}

export async function readStatistics(context: Context, applicationId: string): Promise<Statistics> {
  const now = context.now();
  const known = context.statistics.get(applicationId);
  // A clock that jumped back makes an entry look new for ever: age counts in both directions.
  if (known && Math.abs(now - known.at) < STATISTICS_CACHE_SECONDS * 1000) return known.statistics;
  const statistics = await countAll(context, applicationId, now);
  context.statistics.set(applicationId, { statistics, at: now });
  return statistics;
}

const DAY_MILLISECONDS = 24 * 3600 * 1000;

async function countAll({ db }: Context, applicationId: string, now: number): Promise<Statistics> {
  const settings = await findSettings(db, applicationId);
  if (!settings) throw new Refusal("INVALID_CREDENTIALS");
  const { name, firstNumber, lastNumber, reuseAfterSeconds } = settings;
  const today = now - (now % DAY_MILLISECONDS);
  const daysFrom = today - (STATISTICS_DAYS - 1) * DAY_MILLISECONDS;
  const counts = await readCounts(db, {
    ...{ applicationId, firstNumber, lastNumber, now, daysFrom },
    restedBefore: now - reuseAfterSeconds * 1000,
    valuesShown: STATISTICS_VALUES_SHOWN,
  });
  const badgesOn = new Map(counts.days.map(({ day, count }) => [day, count]));
  const days = Array.from({ length: STATISTICS_DAYS }, (_, place) => dayOf(daysFrom + place * DAY_MILLISECONDS));
  const field = (values: ValueCount[]) => ({ values, others: counts.numbers.issued - sum(values, "badges") });
  const { deviceModel, os, osVersion, sdkVersion } = counts.fields;
  return {
    applicationId,
    name,
    numbers: viewNumbers(lastNumber - firstNumber + 1, counts),
    badges: {
      deviceModel: field(deviceModel),
      os: field(os),
      osVersion: field(osVersion),
      sdkVersion: field(sdkVersion),
    },
    invitations: byState({ pending: 0, claimed: 0, revoked: 0, expired: 0 }, counts.invitations),
    badgesByState: byState({ active: 0, suspended: 0, revoked: 0, expired: 0, replaced: 0 }, counts.states),
    badgesPerDay: days.map((day) => ({ day, badges: badgesOn.get(day) ?? 0 })),
    deliveries: counts.deliveries.map(({ state, outcome, count: events }) => ({ state, outcome, events })),
    asOf: new Date(now).toISOString(),
  };
}

/** `usedPercent` is rounded down, so it is 100 only when nothing is left. */
function viewNumbers(size: number, { numbers, invitations }: Counts): Statistics["numbers"] {
  const { issued, reserved, retired } = numbers;
  const resting = sum(invitations, "resting");
  const used = Math.min(size, numbers.used + resting);
  const usedPercent = Math.floor((used / size) * 1000) / 10;
  return { size, issued, reserved, retired, resting, left: size - used, used, usedPercent };
}

/** States that nothing is in count zero. */
const byState = <States extends Record<string, number>>(
  none: States,
  counts: readonly { state: string; count: number }[],
): States => ({ ...none, ...Object.fromEntries(counts.map(({ state, count }) => [state, count])) });

const dayOf = (milliseconds: number): string => new Date(milliseconds).toISOString().slice(0, 10);

const sum = <Field extends string>(rows: readonly Record<Field, number>[], field: Field): number =>
  rows.reduce((total, row) => total + row[field], 0);
