import type { position } from "./schema.ts";

/** Where an application's list of changes begins (docs/architecture.md). The row is made with the application. */
export const FIRST_POSITION: Omit<typeof position.$inferInsert, "applicationId"> = {
  sequence: 0,
  entry: "start",
  fresh: "[]",
  lastPosition: 0,
  lastChange: 0,
  lastSigningKey: 0,
  epoch: "start",
  hourStartedAt: 0,
  hourUsed: 0,
};
