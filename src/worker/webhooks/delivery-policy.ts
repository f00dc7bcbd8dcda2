import {
  MAX_RETRY_AFTER_SECONDS,
  RETRY_DELAYS_SECONDS,
  RETRY_JITTER,
  SLOW_RETRY_SECONDS,
} from "../../shared/limits/webhook-limits.ts";
import type { UrlRefusal } from "../../shared/outbound-url.ts";
import type { webhookEvent } from "../../shared/schema.ts";
import type { HoldChange } from "../storage/webhook-attempts.ts";

/**
 * The delivery policy (contract section 8): the meaning of an attempt's outcome, the time of the next attempt, and the
 * hold of an endpoint. Pure: time and randomness are passed in, and no function waits, sends or stores.
 */

/** The outcome of one attempt. `refused`: the URL check failed right before sending, so nothing was sent. */
export type AttemptOutcome =
  | { kind: "answered"; status: number; retryAfterSeconds: number | null }
  | { kind: "timeout" }
  | { kind: "network" }
  | { kind: "refused"; reason: UrlRefusal };

/**
 * The next step of an event. `gone`: the receiver responded 410, so the event is held with its endpoint. `exhausted`:
 * no attempts are left; the event is kept and can be replayed.
 */
export type NextStep =
  | { kind: "delivered" }
  | { kind: "retry"; afterMilliseconds: number }
  | { kind: "exhausted" }
  | { kind: "gone" };

/** The first attempt, and one after each delay of the table. */
export const MAX_ATTEMPTS = RETRY_DELAYS_SECONDS.length + 1;

/**
 * The number of attempts of an event of this kind. A test is never repeated, because an administrator waits for its
 * result.
 */
export function maxAttemptsOf(event: (typeof webhookEvent.$inferSelect)["event"]): number {
  return event === "webhook:test" ? 1 : MAX_ATTEMPTS;
}

/**
 * Decides what follows an attempt.
 *
 * @param attemptsBefore attempts recorded before this one: 0 after the first
 * @param maxAttempts attempts the event gets in all (`maxAttemptsOf`)
 * @param random in [0, 1): spreads the retries of events that failed at the same time
 */
export function nextStepAfter(attempt: {
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
      // Raised before jitter is added, so that events throttled together are not retried together.
      const raised = meaning === "overload" ? Math.max(delay, SLOW_RETRY_SECONDS) : delay;
      return { kind: "retry", afterMilliseconds: waitMilliseconds(raised, random, requestedSeconds(outcome)) };
    }
  }
}

/** The longer of the scheduled delay with jitter and the delay that the receiver requested. */
function waitMilliseconds(delaySeconds: number, random: number, requested: number): number {
  const jittered = Math.floor(delaySeconds * 1000 * (1 + RETRY_JITTER * random));
  return Math.max(jittered, requested * 1000);
}

function requestedSeconds(outcome: AttemptOutcome): number {
  if (outcome.kind !== "answered" || outcome.retryAfterSeconds === null) return 0;
  return Math.min(outcome.retryAfterSeconds, MAX_RETRY_AFTER_SECONDS);
}

/** `overload`: the receiver is too busy, so the retry waits at least a minute. */
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

/** Redirects are failures: following one would send the event to an unchecked address. */
function meaningOfStatus(status: number): Meaning {
  if (status >= 200 && status <= 299) return "success";
  if (status === 410) return "gone";
  return status === 429 ? "overload" : "failure";
}

/**
 * How a batch of attempts changes their endpoint's hold; null for no change. One 410 begins a hold, even beside successes.
 * Otherwise a success ends the hold, if it is still the one that `heldAt` names.
 *
 * @param heldAt when the hold began that the endpoint had before the attempts, in milliseconds; null for none
 */
export function holdChange(
  heldAt: number | null,
  steps: readonly NextStep[],
  nowMilliseconds: number,
): HoldChange | null {
  const has = (kind: NextStep["kind"]) => steps.some((step) => step.kind === kind);
  if (has("gone")) return { from: null, to: nowMilliseconds };
  return has("delivered") && heldAt !== null ? { from: heldAt, to: null } : null;
}
