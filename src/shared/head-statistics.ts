import { customType } from "drizzle-orm/sqlite-core";
import type { BadgeState, InvitationState } from "./badge-lifecycle/states.ts";

/** Badges issued on a day, in days since 1970-01-01 UTC. */
export interface DayCount {
  day: number;
  count: number;
}

/** The allocator's counts. */
export interface HeadStatistics {
  badges: Record<BadgeState, number>;
  invitations: Record<InvitationState, number>;
  /** Badges that another one superseded, which are among `badges` as well. */
  retired: number;
  /** Freed numbers, whether or not they may be used again yet. */
  freed: number;
  /** New badges of the last day that had any, in days since 1970-01-01 UTC. */
  newBadges: DayCount;
}

/** The stored form: lists of numbers. With names, the counts would take half of a log entry. */
type StoredStatistics = [
  badges: [active: number, suspended: number, revoked: number, expired: number, replaced: number],
  invitations: [pending: number, claimed: number, revoked: number, expired: number],
  others: [retired: number, freed: number, day: number, count: number],
];

export const statisticsColumn = customType<{ data: HeadStatistics; driverData: string }>({
  dataType: () => "text",
  toDriver({ badges, invitations, retired, freed, newBadges }) {
    const stored: StoredStatistics = [
      [badges.active, badges.suspended, badges.revoked, badges.expired, badges.replaced],
      [invitations.pending, invitations.claimed, invitations.revoked, invitations.expired],
      [retired, freed, newBadges.day, newBadges.count],
    ];
    return JSON.stringify(stored);
  },
  fromDriver(text) {
    const [badges, invitations, [retired, freed, day, count]]: StoredStatistics = JSON.parse(text);
    const [active, suspended, revoked, expired, replaced] = badges;
    const [pending, claimed, revokedInvitations, expiredInvitations] = invitations;
    return {
      badges: { active, suspended, revoked, expired, replaced },
      invitations: { pending, claimed, revoked: revokedInvitations, expired: expiredInvitations },
      retired,
      freed,
      newBadges: { day, count },
    };
  },
});
