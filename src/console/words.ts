import type { BadgeState, EventState, InvitationState, ListedEvent } from "../client/index.ts";
import type { Tone } from "./parts/texts.tsx";

/** The service's states and outcomes in plain words. */

export const BADGE_STATE_WORDS: Readonly<Record<BadgeState, string>> = {
  active: "Active",
  suspended: "Suspended",
  revoked: "Revoked",
  expired: "Expired",
  replaced: "Replaced",
};

export const BADGE_TONES: Readonly<Record<BadgeState, Tone>> = {
  active: "good",
  suspended: "waiting",
  revoked: "bad",
  expired: "over",
  replaced: "over",
};

export const INVITATION_STATE_WORDS: Readonly<Record<InvitationState, string>> = {
  pending: "Waiting",
  claimed: "Claimed",
  revoked: "Revoked",
  expired: "Expired",
};

export const INVITATION_TONES: Readonly<Record<InvitationState, Tone>> = {
  pending: "waiting",
  claimed: "good",
  revoked: "bad",
  expired: "over",
};

export const EVENT_STATE_WORDS: Readonly<Record<EventState, string>> = {
  pending: "Waiting or retrying",
  delivered: "Delivered",
  exhausted: "Given up",
  held: "On hold",
};

export const EVENT_TONES: Readonly<Record<EventState, Tone>> = {
  pending: "waiting",
  delivered: "good",
  exhausted: "bad",
  held: "waiting",
};

const EVENT_WORDS: Readonly<Record<string, string>> = {
  "badge:created": "Badge issued",
  "badge:suspended": "Badge suspended",
  "badge:resumed": "Badge resumed",
  "badge:revoked": "Badge revoked",
  "badge:expired": "Badge expired",
  "badge:replaced": "Badge replaced",
  "invitation:revoked": "Invitation revoked",
  "invitation:expired": "Invitation expired",
  "webhook:test": "Test",
};

export const eventWords = (event: string): string => EVENT_WORDS[event] ?? event;

/** The state of a delivery. @param outcome of its last attempt; null if there was none */
export function deliveryWord(state: EventState, outcome: string | null): string {
  if (state !== "pending") return EVENT_STATE_WORDS[state];
  return outcome === null ? "Waiting" : "Retrying";
}

/** Whether a delivery needs attention. @param outcome of its last attempt; null if there was none */
export function isProblem(state: EventState, outcome: string | null): boolean {
  return state === "pending" ? outcome !== null : state !== "delivered";
}

/** The state of a delivery and why, such as `Given up: no connection`. */
export function outcomeWords(state: EventState, outcome: string | null): string {
  const word = deliveryWord(state, outcome);
  if (state === "delivered") return word;
  if (outcome === null) return `${word}: not tried yet`;
  return `${word}: ${outcomeWord(outcome)}`;
}

/** How an attempt ended. */
export function outcomeWord(outcome: string): string {
  if (outcome === "answered") return "the receiver reported an error";
  if (outcome === "timeout") return "no response in time";
  if (outcome === "network") return "no connection";
  return outcome.startsWith("refused:") ? "the address is not allowed" : outcome;
}

/** What happened to a delivery, and what to do about it. */
export function explainDelivery({ state, lastOutcome, lastStatus }: ListedEvent): string {
  if (state === "delivered") return "The receiver has confirmed it.";
  if (lastOutcome === null) {
    return state === "held" ? "It waits until deliveries are released." : "It is about to be sent for the first time.";
  }
  if (lastOutcome === "answered" && lastStatus !== null) return explainStatus(lastStatus);
  if (lastOutcome === "timeout") return "The receiver did not respond within 15 seconds. Ask those who run it.";
  if (lastOutcome === "network") {
    return "The receiver could not be reached: it is not running, its address is wrong, or its certificate is not valid.";
  }
  if (lastOutcome.startsWith("refused:")) {
    return "The webhook address is not allowed, so nothing was sent. Ask your administrator to change it.";
  }
  return `The last attempt ended with "${lastOutcome}".`;
}

function explainStatus(status: number): string {
  const said = `The receiver responded with HTTP status ${status}`;
  if (status >= 200 && status <= 299) return `${said}, which confirms it.`;
  if (status === 401 || status === 403) {
    return `${said}: it does not accept the service's signature. Does it know the application's current secret?`;
  }
  if (status === 404) return `${said}: nothing is at this address. Is the webhook address right?`;
  if (status === 410)
    return `${said}: it wants no more webhooks. Deliveries are held until your administrator releases them.`;
  if (status >= 300 && status <= 399)
    return `${said}, a redirect, which is not followed. Set the final address instead.`;
  return `${said}, an error on its side. Those who run it find the reason in its log.`;
}
