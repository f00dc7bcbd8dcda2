import { SUBSCRIBABLE_EVENTS } from "./schema.ts";

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
