/** Events that an application can subscribe to (contract section 18). */
export const SUBSCRIBABLE_EVENTS = [
  "badge:created",
  "badge:suspended",
  "badge:resumed",
  "badge:revoked",
  "badge:expired",
  "badge:replaced",
  "invitation:revoked",
  "invitation:expired",
] as const;
export type SubscribableEvent = (typeof SUBSCRIBABLE_EVENTS)[number];

/** All events. `webhook:test` is sent by an administrator's command. */
export type EventName = SubscribableEvent | "webhook:test";
