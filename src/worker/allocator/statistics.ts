import type { BadgeState } from "../../shared/badge-lifecycle/states.ts";
import type { DayCount } from "../../shared/head-statistics.ts";
import { DAY_MILLISECONDS } from "../../shared/time.ts";
import { type BadgeRow, type InvitationRow, isIssued } from "../storage/rows.ts";
import type { Counters } from "./counters.ts";

/** The allocator counts its rows as it changes them (contract section 19), so nobody has to count D1's. */

export function countBadge({ statistics }: Counters, before: BadgeRow | undefined, after: BadgeRow | undefined): void {
  const [was, is] = [recordedState(before), recordedState(after)];
  if (was !== null) statistics.badges[was]--;
  if (is !== null) statistics.badges[is]++;
  statistics.retired += Number(isSuperseded(after)) - Number(isSuperseded(before));
}

export function countInvitation(
  { statistics }: Counters,
  before: InvitationRow | undefined,
  after: InvitationRow | undefined,
): void {
  if (before) statistics.invitations[before.state]--;
  if (after) statistics.invitations[after.state]++;
}

const isSuperseded = (row: BadgeRow | undefined): boolean => row !== undefined && row.supersededAt !== null;

/** A badge counts as expired from when that was recorded. Null: no badge. */
function recordedState(row: BadgeRow | undefined): BadgeState | null {
  if (!isIssued(row)) return null;
  const isFinal = row.state === "revoked" || row.state === "replaced";
  return !isFinal && row.endedAt !== null ? "expired" : row.state;
}

/** D1 refused the badge's number. An earlier day keeps its count. */
export function uncountNewBadge({ statistics }: Counters, issuedAt: number): void {
  const { day, count } = statistics.newBadges;
  if (Math.floor(issuedAt / DAY_MILLISECONDS) === day) statistics.newBadges = { day, count: count - 1 };
}

/**
 * Counts a new badge. If the clock was set back to an earlier day, the badge counts for the last day.
 *
 * @returns the day that ended with it; null: none did
 */
export function countNewBadge({ statistics }: Counters, now: number): DayCount | null {
  const last = statistics.newBadges;
  const day = Math.max(last.day, Math.floor(now / DAY_MILLISECONDS));
  const isNewDay = day > last.day;
  statistics.newBadges = { day, count: isNewDay ? 1 : last.count + 1 };
  return isNewDay && last.count > 0 ? last : null;
}
