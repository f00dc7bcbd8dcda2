import type { BadgeState } from "../../shared/badge-lifecycle/states.ts";
import { STATISTICS_DAYS } from "../../shared/limits.ts";
import { DAY_MILLISECONDS } from "../../shared/time.ts";
import { type BadgeRow, type InvitationRow, isIssued } from "../storage/rows.ts";
import type { Counters } from "./counters.ts";

/** The allocator counts its rows as it changes them (contract section 19), so nobody has to count D1's. */

export function countBadge(
  { statistics }: Counters,
  before: BadgeRow | undefined,
  after: BadgeRow | undefined,
  now: number,
): void {
  const [was, is] = [recordedState(before), recordedState(after)];
  if (was !== null) statistics.badges[was]--;
  if (is !== null) statistics.badges[is]++;
  statistics.retired += Number(isSuperseded(after)) - Number(isSuperseded(before));
  if (!isIssued(before) && isIssued(after)) countNewBadge(statistics.newBadges, Math.floor(now / DAY_MILLISECONDS));
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

/** @param day days since 1970-01-01 UTC; one before the first is counted for the first: the clock was set back */
function countNewBadge(newBadges: Counters["statistics"]["newBadges"], day: number): void {
  if (newBadges.counts.length === 0) newBadges.from = day;
  const index = Math.max(0, day - newBadges.from);
  // A gap of more than the days that are shown leaves nothing to keep.
  if (index >= 2 * STATISTICS_DAYS) {
    newBadges.from = day;
    newBadges.counts = [1];
    return;
  }
  while (newBadges.counts.length <= index) newBadges.counts.push(0);
  newBadges.counts[index] = (newBadges.counts[index] ?? 0) + 1;
  const excess = newBadges.counts.length - STATISTICS_DAYS;
  if (excess > 0) {
    newBadges.counts.splice(0, excess);
    newBadges.from += excess;
  }
}
