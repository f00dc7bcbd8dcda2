import type * as z from "zod";
import type { ApplicationId } from "../identifiers.ts";
import { STATISTICS_DAYS, STATISTICS_VALUES_SHOWN } from "../limits.ts";
import type { statistics } from "../overview-responses.ts";
import type { LoginCounts } from "../storage/statistics.ts";
import { DAY_MILLISECONDS, isoTime } from "../time.ts";
import type { Counts } from "./counts.ts";

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

/** The same, with what is counted apart. */
export type ShownApplication = CountedApplication & { logins: LoginCounts };

export function viewStatistics(application: ShownApplication, counts: Counts): Statistics {
  const { applicationId, name } = application;
  const { startedAt, numbers, fields, badgesByDay } = counts;
  const today = Math.floor(startedAt / DAY_MILLISECONDS);
  const days = Array.from({ length: STATISTICS_DAYS }, (_, index) => today - STATISTICS_DAYS + 1 + index);
  const field = (all: Counts["fields"]["os"]) => {
    const values = all.slice(0, STATISTICS_VALUES_SHOWN);
    return { values, others: numbers.issued - values.reduce((sum, { badges }) => sum + badges, 0) };
  };
  return {
    applicationId,
    name,
    numbers: viewNumbers(application, counts),
    badges: {
      deviceModel: field(fields.deviceModel),
      os: field(fields.os),
      osVersion: field(fields.osVersion),
      sdkVersion: field(fields.sdkVersion),
    },
    invitations: { pending: 0, claimed: 0, revoked: 0, expired: 0, ...counts.invitations },
    badgesByState: { active: 0, suspended: 0, revoked: 0, expired: 0, replaced: 0, ...counts.badgesByState },
    badgesPerDay: days.map((day) => ({ day: dayOf(day), badges: badgesByDay[String(day)] ?? 0 })),
    deliveries: counts.deliveries,
    logins: application.logins,
    asOf: isoTime(startedAt),
  };
}

/** `usedPercent` is rounded down, so it is 100 only when nothing is left. */
function viewNumbers({ firstNumber, lastNumber }: CountedApplication, counts: Counts): Statistics["numbers"] {
  const size = lastNumber - firstNumber + 1;
  const { resting } = counts;
  const { issued, reserved, retired } = counts.numbers;
  const used = Math.min(size, counts.numbers.used + resting);
  const usedPercent = Math.floor((used / size) * 1000) / 10;
  return { size, issued, reserved, retired, resting, left: size - used, used, usedPercent };
}

/** @param day days since 1970-01-01 */
const dayOf = (day: number): string => new Date(day * DAY_MILLISECONDS).toISOString().slice(0, 10);
