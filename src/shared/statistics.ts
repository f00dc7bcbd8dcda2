import type * as z from "zod";
import type { ApplicationId } from "./identifiers.ts";
import { STATISTICS_DAYS, STATISTICS_VALUES_SHOWN } from "./limits.ts";
import type { statistics } from "./overview-responses.ts";
import type { Database } from "./storage/d1.ts";
import { type Counts, readCounts } from "./storage/statistics.ts";

/** What `GET /v1/stats` responds and `stats --json` of the administration script prints (contract section 19). */
export type Statistics = z.infer<typeof statistics>;

/** What the statistics need to know about an application. */
export interface CountedApplication {
  applicationId: ApplicationId;
  name: string;
  firstNumber: number;
  lastNumber: number;
  reuseAfterSeconds: number;
}

const DAY_MILLISECONDS = 24 * 3600 * 1000;

/** Counts an application's badges, invitations and events. One round trip, which reads every row. @param now milliseconds */
export async function countStatistics(
  db: Database,
  { applicationId, name, firstNumber, lastNumber, reuseAfterSeconds }: CountedApplication,
  now: number,
): Promise<Statistics> {
  const today = now - (now % DAY_MILLISECONDS);
  const daysFrom = today - (STATISTICS_DAYS - 1) * DAY_MILLISECONDS;
  const counts = await readCounts(db, {
    ...{ applicationId, firstNumber, lastNumber, now, daysFrom },
    restedBefore: now - reuseAfterSeconds * 1000,
    valuesShown: STATISTICS_VALUES_SHOWN,
  });
  const badgesOn = new Map(counts.days.map(({ day, count }) => [day, count]));
  const days = Array.from({ length: STATISTICS_DAYS }, (_, index) => dayOf(daysFrom + index * DAY_MILLISECONDS));
  const field = (values: Counts["fields"]["os"]) => ({ values, others: counts.numbers.issued - sum(values, "badges") });
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
    logins: counts.logins,
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

/** Fills in zero for states without rows. */
const byState = <States extends Record<string, number>>(
  none: States,
  counts: readonly { state: string; count: number }[],
): States => ({ ...none, ...Object.fromEntries(counts.map(({ state, count }) => [state, count])) });

const dayOf = (milliseconds: number): string => new Date(milliseconds).toISOString().slice(0, 10);

const sum = <Field extends string>(rows: readonly Record<Field, number>[], field: Field): number =>
  rows.reduce((total, row) => total + row[field], 0);
