import type { applicationHead } from "./schema.ts";

/** The head of an application that was never changed (docs/architecture.md). The row is made with the application. */
export const INITIAL_HEAD: Omit<typeof applicationHead.$inferInsert, "applicationId"> = {
  sequence: 0,
  entry: "start",
  rangeSegments: [],
  lastOrdinal: 0,
  lastChange: 0,
  lastSigningKey: 0,
  epoch: "start",
  hour: 0,
  hourUsed: 0,
  statistics: {
    badges: { active: 0, suspended: 0, revoked: 0, expired: 0, replaced: 0 },
    invitations: { pending: 0, claimed: 0, revoked: 0, expired: 0 },
    retired: 0,
    freed: 0,
    newBadges: { day: 0, count: 0 },
  },
};
