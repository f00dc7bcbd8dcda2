import type { applicationHead, counterColumns } from "../../shared/schema.ts";

/** What the log counts, with every entry as it left it. The names are those of src/shared/schema.ts, which says what they mean. */
export type Counters = Pick<typeof applicationHead.$inferSelect, keyof typeof counterColumns>;

/** An entry's place in the log. */
export interface Mark {
  sequence: number;
  /** ID of the entry. */
  entry: string;
}

export const copyCounters = (counters: Counters): Counters => structuredClone(counters);

/** The counters among a row's columns, or the columns themselves. */
export const countersOf = <Each extends Record<keyof Counters, unknown>>(columns: Each): Pick<Each, keyof Counters> => {
  const { rangeSegments, lastOrdinal, lastChange, lastSigningKey, epoch, hour, hourUsed, statistics } = columns;
  return { rangeSegments, lastOrdinal, lastChange, lastSigningKey, epoch, hour, hourUsed, statistics };
};
