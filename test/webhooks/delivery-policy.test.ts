import { describe, expect, it, test } from "vitest";
import { parseRetryAfter } from "../../src/shared/retry-after.ts";
import type { HoldChange } from "../../src/worker/storage/webhook-attempts.ts";
import * as policy from "../../src/worker/webhooks/delivery-policy.ts";
import { fc } from "../support/random.ts";

const { holdChange, nextStepAfter, MAX_ATTEMPTS, maxAttemptsOf } = policy;
type Outcome = policy.AttemptOutcome;

const NOW = Date.UTC(2026, 8, 20, 12, 0, 0);
const NETWORK: Outcome = { kind: "network" };
const TIMEOUT: Outcome = { kind: "timeout" };
const REFUSED: Outcome = { kind: "refused", reason: "ip-literal" };
/** Contract section 8: 5 s, 1 m, 5 m, 30 m, 2 h, 5 h, then 7 × 10 h. */
const RETRY_DELAYS_SECONDS = [5, 60, 300, 1800, 7200, 18_000, ...Array.from({ length: 7 }, () => 36_000)];

const answered = (status: number, retryAfterSeconds: number | null = null): Outcome => {
  return { kind: "answered", status, retryAfterSeconds };
};
const retry = (seconds: number): policy.NextStep => ({ kind: "retry", afterMilliseconds: seconds * 1000 });

const dice = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const failures = fc.constantFrom(NETWORK, REFUSED, ...[302, 400, 404, 500, 503].map((status) => answered(status)));

describe("an event gets 14 attempts over 77 hours (contract section 8)", () => {
  it("an event gets 14 attempts: after 5 s, 1 m, 5 m, 30 m, 2 h, 5 h and 7 times 10 h", () => {
    const maxAttempts = maxAttemptsOf("badge:created");
    const steps = Array.from({ length: 14 }, (_, before) =>
      nextStepAfter({ attemptsBefore: before, outcome: NETWORK, random: 0, maxAttempts }),
    );
    expect(steps).toEqual([...RETRY_DELAYS_SECONDS.map(retry), { kind: "exhausted" }]);
  });

  it("each delay has 0 to 10 % of jitter, in whole milliseconds, so that failed events are not retried together", () => {
    fc.assert(
      fc.property(fc.nat(MAX_ATTEMPTS - 2), failures, dice, (attemptsBefore, outcome, random) => {
        const step = nextStepAfter({ attemptsBefore, outcome, random });
        const wait = step.kind === "retry" ? step.afterMilliseconds : Number.NaN;
        const delay = (RETRY_DELAYS_SECONDS[attemptsBefore] ?? 0) * 1000;
        expect(wait).toBeGreaterThanOrEqual(delay);
        expect(wait).toBeLessThanOrEqual(delay * 1.1);
        expect(wait).toBe(Math.trunc(wait));
      }),
    );
    expect(nextStepAfter({ attemptsBefore: 0, outcome: NETWORK, random: 0.5 })).toEqual(retry(5.25));
  });

  it("a test event gets one attempt", () => {
    const test = { attemptsBefore: 0, random: 0, maxAttempts: maxAttemptsOf("webhook:test") };
    expect(nextStepAfter({ ...test, outcome: NETWORK })).toEqual({ kind: "exhausted" });
    expect(nextStepAfter({ ...test, outcome: answered(200) })).toEqual({ kind: "delivered" });
  });
});

describe("the response decides what follows an attempt (contract section 8)", () => {
  it("on every attempt 2xx delivers and 410 ends; anything else, redirects included, is a failure", () => {
    for (let status = 100; status <= 599; status++) {
      for (let attemptsBefore = 0; attemptsBefore < 14; attemptsBefore++) {
        const failed = attemptsBefore === 13 ? "exhausted" : "retry";
        const expected = status >= 200 && status < 300 ? "delivered" : status === 410 ? "gone" : failed;
        expect(nextStepAfter({ attemptsBefore, outcome: answered(status, 5), random: 0 }).kind, `${status}`).toBe(
          expected,
        );
      }
    }
  });

  test.each<[string, Outcome, seconds: number, attemptsBefore?: number, random?: number]>([
    ["a server error", answered(500), 5],
    ["a URL that is not allowed any more", REFUSED, 5],
    ["429", answered(429), 60],
    ["a timeout", TIMEOUT, 60],
    ["a timeout, with jitter", TIMEOUT, 63, 0, 0.5],
    ["429 where the table has more than a minute", answered(429), 300, 2],
    ["429 that asks for less than a minute", answered(429, 10), 60],
    ["429 that asks for more", answered(429, 90), 90],
    ["503 that asks for less than the table", answered(503, 3), 5],
    ["a redirect that asks for 10 hours", answered(302, 36_000), 36_000],
    ["503 that asks for more than 10 hours", answered(503, 36_001), 36_000],
    ["503 that asks for eternity", answered(503, Number.POSITIVE_INFINITY), 36_000],
  ])("the response sets the delay of the next attempt after %s", (_, outcome, seconds, before = 0, random = 0) => {
    expect(nextStepAfter({ attemptsBefore: before, outcome, random })).toEqual(retry(seconds));
  });
});

describe("Retry-After is read as RFC 9110 specifies it (contract section 8)", () => {
  test.each<[number, string]>([
    [0, "0|Sun, 20 Sep 2026 12:00:00 GMT|Sun, 20 Sep 2026 11:59:59 GMT"],
    [0, "Sun, 06 Nov 1994 08:49:37 GMT|Sunday, 06-Nov-94 08:49:37 GMT|Sun Nov  6 08:49:37 1994"],
    [0, "Monday, 20-Sep-77 12:00:00 GMT"],
    [90, "90| 90 |0090|Sun, 20 Sep 2026 12:01:30 GMT|Sunday, 20-Sep-26 12:01:30 GMT|Sun Sep 20 12:01:30 2026"],
    [11 * 24 * 3600, "950400|Thu, 01 Oct 2026 12:00:00 GMT|Thursday, 01-Oct-26 12:00:00 GMT|Thu Oct  1 12:00:00 2026"],
    [(Date.UTC(2076, 8, 20, 12) - NOW) / 1000, "Sunday, 20-Sep-76 12:00:00 GMT"],
    [Number.POSITIVE_INFINITY, "9".repeat(400)],
  ])("%d seconds: %s", (seconds, values) => {
    for (const value of values.split("|")) expect(parseRetryAfter(value, NOW), value).toBe(seconds);
  });

  it("an unreadable Retry-After counts as none", () => {
    const values = `|soon|-1|+1|1.5|1e3|0x10|1 2|60, 120|60s|NaN|Infinity|１２|2026-09-20T12:01:30Z|20 Sep 2026 12:01:30 GMT|
      Sun, 20 Sep 2026 12:01:30|Sun, 20 Sep 2026 12:01:30 UTC|Sun, 20 Sep 2026 12:01:30 +0000|Sun, 20 sep 2026 12:01:30 GMT|
      Sun, 20 Sep 2026 24:00:00 GMT|Sun, 20 Sep 2026 12:60:00 GMT|Thu, 31 Sep 2026 12:01:30 GMT|Mon, 30 Feb 2026 12:01:30 GMT`;
    for (const value of [null, ...values.split("|")]) expect(parseRetryAfter(value, NOW), String(value)).toBeNull();
  });

  it("a date is never met early, even between two seconds", () => {
    expect(parseRetryAfter("Sun, 20 Sep 2026 12:01:30 GMT", NOW + 1)).toBe(90);
    expect(parseRetryAfter("Sun, 20 Sep 2026 12:01:30 GMT", NOW + 1000)).toBe(89);
  });
});

describe("only a 410 holds an endpoint (contract section 8)", () => {
  const GONE: policy.NextStep = { kind: "gone" };
  const DELIVERED: policy.NextStep = { kind: "delivered" };
  const EXHAUSTED: policy.NextStep = { kind: "exhausted" };
  const hold = { from: null, to: NOW };
  const release = { from: 1, to: null };

  test.each<[string, number | null, policy.NextStep[], HoldChange | null]>([
    ["a 410 holds the endpoint", null, [GONE], hold],
    ["a 410 holds the endpoint even beside successes", 1, [DELIVERED, GONE, EXHAUSTED], hold],
    ["a success ends the hold", 1, [EXHAUSTED, DELIVERED], release],
    ["a success changes nothing without a hold", null, [DELIVERED], null],
    ["failures change nothing, though they are the last attempts", null, [retry(5), EXHAUSTED], null],
    ["failures do not end a hold", 1, [retry(5), EXHAUSTED], null],
  ])("%s", (_, heldAt, steps, change) => {
    expect(holdChange(heldAt, steps, NOW)).toEqual(change);
  });
});
