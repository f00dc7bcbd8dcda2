import type { SubscribableEvent } from "./schema.ts";
import { sortableId } from "./identifiers.ts";

/** What history says was done (contract section 23): what events report, and what no event does. */
export type HistoryAction =
  | SubscribableEvent
  | "badge:rebound"
  | "badge:rescheduled"
  | "user:blocked"
  | "user:unblocked"
  | "user:erased"
  | "invitation:created"
  | "application:updated"
  | "application:disabled"
  | "application:enabled"
  | "secret:added"
  | "secret:promoted"
  | "secret:retired"
  | "key:rotated"
  | "event:replayed";

/** ID of a row of history. IDs sort by time; those of one moment by `index`. */
export const historyId = (at: number, index = 0): string => sortableId("his_", at, index);
