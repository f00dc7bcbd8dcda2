import { SUBSCRIBABLE_EVENTS } from "./events.ts";
import { sortableId } from "./identifiers.ts";

/** What the history names (contract section 23): what webhooks report, whether or not the application subscribes, and more. */
export const HISTORY_ACTIONS = [
  ...SUBSCRIBABLE_EVENTS,
  "badge:rebound",
  "badge:rescheduled",
  "user:blocked",
  "user:unblocked",
  "user:erased",
  "invitation:created",
  "application:updated",
  "application:disabled",
  "application:enabled",
  "secret:added",
  "secret:promoted",
  "secret:retired",
  "key:rotated",
  "event:replayed",
] as const;
export type HistoryAction = (typeof HISTORY_ACTIONS)[number];

/** ID of a row of history. IDs sort by time; those of one moment by `index`. */
export const historyId = (at: number, index = 0): string => sortableId("his_", at, index);
