import type { applicationHead } from "../../shared/schema.ts";

/** What the log counts, with every entry as it left it. The names are those of src/shared/schema.ts, which says what they mean. */
export type Counters = Pick<
  typeof applicationHead.$inferSelect,
  "rangeSegments" | "lastOrdinal" | "lastChange" | "lastSigningKey" | "epoch" | "hour" | "hourUsed" | "statistics"
>;

/** An entry's place in the log. */
export interface Mark {
  sequence: number;
  /** ID of the entry. */
  entry: string;
}

export const copyCounters = (counters: Counters): Counters => structuredClone(counters);
