import * as z from "zod";
import type { ActorKind } from "./actor.ts";
import { SUBSCRIBABLE_EVENTS } from "./events.ts";
import { sortableId, sortablePrefix } from "./identifiers.ts";
import { isoTime } from "./time.ts";

/** Actions of the history (contract section 23): all that webhooks report, subscribed or not, and more. */
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

/** ID of a row of history. IDs sort by time, and within a millisecond by `index`. */
export const historyId = (at: number, index = 0): string => sortableId("his_", at, index);

/** Prefix of the IDs of a moment, in milliseconds; the IDs of earlier moments sort before it. */
export const historyIdPrefix = (at: number): string => sortablePrefix("his_", at);

/** A row as D1 has it. `at`: milliseconds; `detail`: JSON. */
export interface StoredHistory {
  at: number;
  action: string;
  actorKind: ActorKind;
  actorName: string | null;
  badge: number | null;
  userId: string | null;
  requestId: string | null;
  reason: string | null;
  detail: string | null;
}

const storedDetail = z.record(z.string(), z.unknown());

/** A row as `GET /v1/history` and the script's `history` show it. */
export function viewHistory(row: StoredHistory) {
  const { at, action, actorKind: kind, actorName: name, badge, userId, requestId, reason, detail } = row;
  return {
    at: isoTime(at),
    action,
    actor: { kind, ...(name !== null && { name }) },
    ...(badge !== null && { badgeId: String(badge) }),
    ...(userId !== null && { userId }),
    ...(requestId !== null && { requestId }),
    ...(reason !== null && { reason }),
    ...(detail !== null && { detail: storedDetail.parse(JSON.parse(detail)) }),
  };
}
