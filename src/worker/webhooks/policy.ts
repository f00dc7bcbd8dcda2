import {
  HOLD_AFTER_ATTEMPTS,
  HOLD_AFTER_SECONDS,
  MAX_RETRY_AFTER_SECONDS,
  RETRY_DELAYS_SECONDS,
  RETRY_JITTER,
  SLOW_RETRY_SECONDS,
} from "../../shared/limits.ts";
import type { webhookEvent } from "../../shared/schema.ts";
import type { UrlRefusal } from "../../shared/webhook-url.ts";

/**
 * The delivery policy (contract section 8): what an attempt's outcome means, when the next attempt is due, and when an
 * endpoint is held. Pure: the clock and the dice are passed in, and nothing here waits, sends or stores.
 */

/** What became of one attempt. `refused`: the URL guard said no at the moment of sending, so nothing was sent. */
export type AttemptOutcome =
  | { kind: "answered"; status: number; retryAfterSeconds: number | null }
  | { kind: "timeout" }
  | { kind: "network" }
  | { kind: "refused"; reason: UrlRefusal };

/**
 * What happens to the event next. `gone`: the receiver said 410, so no attempt follows and the event is held with its
 * endpoint. `exhausted`: every attempt is used up; the event is kept and can be replayed.
 */
export type NextStep =
  | { kind: "delivered" }
  | { kind: "retry"; afterMilliseconds: number }
  | { kind: "exhausted" }
  | { kind: "gone" };

/** One attempt, then one after each delay of the table. */
export const MAX_ATTEMPTS = RETRY_DELAYS_SECONDS.length + 1;

/** Attempts an event of this kind gets. Whoever sends a test event waits for its answer: it is never repeated. */
export function maxAttemptsOf(event: (typeof webhookEvent.$inferSelect)["event"]): number {
  return event === "webhook:test" ? 1 : MAX_ATTEMPTS;
}

/**
 * Decides what follows an attempt.
 *
 * @param attemptsBefore attempts recorded before this one: 0 after the first
 * @param maxAttempts attempts the event gets in all (`maxAttemptsOf`)
 * @param random in [0, 1): spreads the retries of events that failed together
 */
export function decide(attempt: {
  attemptsBefore: number;
  outcome: AttemptOutcome;
  random: number;
  maxAttempts?: number;
}): NextStep {
  const { attemptsBefore, outcome, random, maxAttempts = MAX_ATTEMPTS } = attempt;
  const meaning = meaningOf(outcome);
  switch (meaning) {
    case "success":
      return { kind: "delivered" };
    case "gone":
      return { kind: "gone" };
    case "overload":
    case "failure": {
      const delay = RETRY_DELAYS_SECONDS[attemptsBefore];
      if (delay === undefined || attemptsBefore + 1 >= maxAttempts) return { kind: "exhausted" };
      // Raised before the jitter, so that what was throttled together does not come back together.
      const raised = meaning === "overload" ? Math.max(delay, SLOW_RETRY_SECONDS) : delay;
      return { kind: "retry", afterMilliseconds: waitMilliseconds(raised, random, askedSeconds(outcome)) };
    }
  }
}

/** Of the table's wait with its jitter and the wait that the receiver asked for, the longer. */
function waitMilliseconds(delaySeconds: number, random: number, askedFor: number): number {
  const jittered = Math.floor(delaySeconds * 1000 * (1 + RETRY_JITTER * random));
  return Math.max(jittered, askedFor * 1000);
}

function askedSeconds(outcome: AttemptOutcome): number {
  if (outcome.kind !== "answered" || outcome.retryAfterSeconds === null) return 0;
  return Math.min(outcome.retryAfterSeconds, MAX_RETRY_AFTER_SECONDS);
}

/** `overload`: the receiver is up but has too much to do, so it gets at least a minute. */
type Meaning = "success" | "gone" | "overload" | "failure";

function meaningOf(outcome: AttemptOutcome): Meaning {
  switch (outcome.kind) {
    case "answered":
      return meaningOfStatus(outcome.status);
    case "timeout":
      return "overload";
    case "network":
    case "refused":
      return "failure";
  }
}

/** Redirects are failures: following one would send the event to an address that nobody checked. */
function meaningOfStatus(status: number): Meaning {
  if (status >= 200 && status <= 299) return "success";
  if (status === 410) return "gone";
  return status === 429 ? "overload" : "failure";
}

/** How an endpoint has been doing. Times are milliseconds since 1970-01-01 UTC. */
export interface EndpointHealth {
  /** First failure since the last success. */
  failingSince: number | null;
  /** Failed attempts since the last success. */
  failures: number;
  /** Set while deliveries are held. */
  heldAt: number | null;
}

/** What is known of an endpoint that was just set, or has just succeeded. */
export const HEALTHY: EndpointHealth = { failingSince: null, failures: 0, heldAt: null };

/**
 * The endpoint's health after an attempt. A success clears it, a hold included; 410 holds at once; nothing but failures
 * for `HOLD_AFTER_SECONDS`, and at least `HOLD_AFTER_ATTEMPTS` of them, holds too.
 */
export function afterAttempt(health: EndpointHealth, step: NextStep, nowMilliseconds: number): EndpointHealth {
  if (step.kind === "delivered") return HEALTHY;
  // After the clock went backwards the first failure would lie ahead: the time is counted from now again.
  const failingSince = Math.min(health.failingSince ?? nowMilliseconds, nowMilliseconds);
  const failures = health.failures + 1;
  const dead = nowMilliseconds - failingSince >= HOLD_AFTER_SECONDS * 1000 && failures >= HOLD_AFTER_ATTEMPTS;
  const heldNow = step.kind === "gone" || dead ? nowMilliseconds : null;
  return { failingSince, failures, heldAt: health.heldAt ?? heldNow };
}
