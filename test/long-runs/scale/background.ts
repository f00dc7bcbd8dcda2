import { COMPARE_AFTER_MILLISECONDS } from "../../../src/shared/limits/allocator-limits.ts";
import { BACKGROUND_COSTS, type Cost } from "./cost.ts";

/** A line of a month's bill. */
export interface Line {
  /** What causes it, as docs/scale.md has it. */
  name: string;
  /** Of one. */
  cost: Cost;
  /** How many in a month. */
  count: number;
}

export const DAYS_A_MONTH = 30;
const MINUTES_A_MONTH = DAYS_A_MONTH * 24 * 60;
const SECONDS_A_MONTH = MINUTES_A_MONTH * 60;

interface Month {
  homes: number;
  applications: number;
  /** Entries of all allocators. */
  entries: number;
  /** Rows that became old, each deleted once. */
  deletedEvents: number;
  deletedInvitations: number;
  deletedHistory: number;
  /** Events that D1 has: the scan for old ones reads each once a day. */
  keptEvents: number;
}

/** Every object, alarm and deletion that no call causes. */
export function backgroundLines(month: Month): Line[] {
  const { homes, applications, entries } = month;
  const mostAlarms = (applications * SECONDS_A_MONTH * 1000) / COMPARE_AFTER_MILLISECONDS;
  const alarms = Math.min(entries, mostAlarms);
  return [
    { name: "schedulers: ticks", cost: BACKGROUND_COSTS.idleTick, count: MINUTES_A_MONTH * homes },
    {
      name: "schedulers: ticks, for each application",
      cost: BACKGROUND_COSTS.idleTickOfApplication,
      count: MINUTES_A_MONTH * applications,
    },
    { name: "allocators: alarms", cost: BACKGROUND_COSTS.alarm, count: alarms },
    { name: "alarms set", cost: BACKGROUND_COSTS.setAlarm, count: alarms },
    // As many as are made: each entry is forgotten once.
    { name: "allocators: old entries deleted", cost: BACKGROUND_COSTS.deletedEntry, count: entries },
    { name: "old events deleted", cost: BACKGROUND_COSTS.deletedEvent, count: month.deletedEvents },
    { name: "old invitations deleted", cost: BACKGROUND_COSTS.deletedInvitation, count: month.deletedInvitations },
    { name: "old history deleted", cost: BACKGROUND_COSTS.deletedHistory, count: month.deletedHistory },
    { name: "scans for old events", cost: BACKGROUND_COSTS.scannedRow, count: month.keptEvents * DAYS_A_MONTH },
  ];
}
