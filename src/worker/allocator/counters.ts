import type { applicationHead, counterColumns } from "../../shared/schema.ts";

/** The log's counters. Each entry stores them as it left them; src/shared/schema.ts explains each one. */
export type Counters = Pick<typeof applicationHead.$inferSelect, keyof typeof counterColumns>;

/** An entry's place in the log. */
export interface Mark {
  sequence: number;
  /** ID of the entry. */
  entry: string;
}

/** The counters among a row's columns, or the columns themselves. */
export const countersOf = <Each extends Record<keyof Counters, unknown>>(columns: Each): Pick<Each, keyof Counters> => {
  const { rangeSegments, lastOrdinal, lastChange, lastSigningKey, epoch, hour, hourUsed, statistics } = columns;
  return { rangeSegments, lastOrdinal, lastChange, lastSigningKey, epoch, hour, hourUsed, statistics };
};
