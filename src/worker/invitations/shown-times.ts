import { isoTime } from "../../shared/time.ts";
import type { InvitationRow } from "../storage/rows.ts";

type StoredTimes = Pick<InvitationRow, "badgeStartsAt" | "badgeStartsAtTime" | "badgeExpiresAt" | "badgeExpiresAtTime">;

/** Start and end of an invitation's badge. A time is as it was sent, unless the badge's was changed after the claim. */
export function shownTimes(times: StoredTimes): { badgeStartsAt?: string; badgeExpiresAt?: string } {
  const badgeStartsAt = textOf(times.badgeStartsAt, times.badgeStartsAtTime);
  const badgeExpiresAt = textOf(times.badgeExpiresAt, times.badgeExpiresAtTime);
  return { ...(badgeStartsAt !== null && { badgeStartsAt }), ...(badgeExpiresAt !== null && { badgeExpiresAt }) };
}

const textOf = (sent: string | null, time: number | null): string | null =>
  sent !== null && Date.parse(sent) === time ? sent : isoTime(time);
