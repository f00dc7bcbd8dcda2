/** Delivery of webhooks (contract section 8). */

/** Maximum length of a URL, as written and as normalized. */
export const MAX_WEBHOOK_URL_CHARACTERS = 2048;
/** Wait after the 1st, 2nd, … failed attempt; 14 attempts in all, over 77 h 36 min without jitter. */
export const RETRY_DELAYS_SECONDS = [
  5,
  60,
  5 * 60,
  30 * 60,
  2 * 3600,
  5 * 3600,
  ...Array.from({ length: 7 }, () => 10 * 3600),
] as const;
/** Maximum jitter added to a delay, as a fraction of it. */
export const RETRY_JITTER = 0.1;
export const MAX_RETRY_AFTER_SECONDS = 10 * 3600;
/** Shortest wait after a 429 or a timeout. */
export const SLOW_RETRY_SECONDS = 60;
export const DELIVERY_TIMEOUT_MILLISECONDS = 15_000;
/** How long an event is leased to its sender: an attempt and its recording, with a margin. */
export const DELIVERY_LEASE_SECONDS = 60;
/** A random part of this is added to each lease, by which a repeated lease recognizes its own events. */
export const DELIVERY_LEASE_SPREAD_MILLISECONDS = 10_000;
export const MAX_RESPONSE_READ_BYTES = 16 * 1024;
export const MAX_STORED_RESPONSE_BYTES = 1024;

/** Deliveries of one application that begin each second; the others wait, so that other applications get D1 (contract section 21). */
export const DELIVERIES_PER_SECOND = 50;
