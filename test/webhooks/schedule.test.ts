import { describe, expect, it } from "vitest";
import { useQuietLog } from "../invitations/support/log.ts";
import { byEffort } from "../support/effort.ts";
import { type EventRow, Outbox } from "../support/outbox.ts";
import { answer, type Receiver, useReceivers } from "../support/receivers.ts";

const SEEDS = Array.from({ length: byEffort(1, 30) }, (_, place) => place + 1);
const receiver = useReceivers();
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const EVENTS = 8;
/** The receiver's mood changes at these hours, at random. */
const FLAPPING_HOURS = 80;

useQuietLog();

/** Mulberry32: small, seeded, good enough for a test's dice. */
function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Attempt {
  at: number;
  eventId: string;
  status: number;
}

/** A receiver that for some hours works, for some fails, refuses to be hurried or cannot be found. */
function flapping(roll: () => number, now: () => number): { endpoint: Receiver; attempts: Attempt[] } {
  const attempts: Attempt[] = [];
  const start = now();
  const moods = Array.from(
    { length: FLAPPING_HOURS / 4 },
    () => [200, 500, 503, 429, 302, 0][Math.floor(roll() * 6)] ?? 0,
  );
  const endpoint = receiver(({ headers }) => {
    const hours = (now() - start) / HOUR;
    // Now and then it answers out of its mood; in the end it works.
    const mood = hours >= FLAPPING_HOURS ? 200 : (moods[Math.floor(hours / 4)] ?? 0);
    const status = mood !== 200 || roll() < 0.8 ? mood : 500;
    attempts.push({ at: now(), eventId: headers.get("webhook-id") ?? "", status });
    if (status === 0) throw new TypeError("Network connection lost.");
    return answer(status, status === 503 ? { "Retry-After": String(Math.floor(roll() * 20_000)) } : {});
  });
  return { endpoint, attempts };
}

/**
 * The queue as it may behave: it brings a message late, twice or never, in any order. The sweep runs every minute; minutes
 * in which nothing can happen are left out.
 */
class SimulatedHours {
  readonly #outbox: Outbox;
  readonly #roll: () => number;
  #messages: { eventId: string; at: number }[] = [];

  constructor(outbox: Outbox, roll: () => number) {
    this.#outbox = outbox;
    this.#roll = roll;
  }

  async runMinute(): Promise<void> {
    const outbox = this.#outbox;
    await outbox.sweep();
    this.#take();
    const due = this.#messages.filter(({ at }) => at <= outbox.now);
    this.#messages = this.#messages.filter(({ at }) => at > outbox.now);
    due.sort(() => this.#roll() - 0.5);
    if (due.length > 0) await outbox.deliver(...due.map(({ eventId }) => eventId));
    this.#take();
  }

  #take(): void {
    for (const { body, delaySeconds } of this.#outbox.queue.sent.splice(0)) {
      const luck = this.#roll();
      const copies = luck < 0.15 ? 0 : luck < 0.3 ? 2 : 1;
      for (let copy = 0; copy < copies; copy++) {
        const late = this.#roll() < 0.2 ? this.#roll() * 10 * MINUTE : 0;
        this.#messages.push({ eventId: body.eventId, at: this.#outbox.now + delaySeconds * 1000 + late });
      }
    }
  }

  /** On to the next whole minute in which a message comes or one of these moments lies. */
  skipTo(moments: readonly number[]): void {
    const next = Math.min(...moments, ...this.#messages.map(({ at }) => at));
    const minutes = Math.max(1, Math.ceil((next - this.#outbox.now) / MINUTE));
    this.#outbox.now += minutes * MINUTE;
  }
}

describe("80 hours with an unreliable receiver and a queue that loses and repeats messages (contract section 8)", () => {
  it.each(SEEDS)("every event ends on time, and nothing is sent after a success: seed %d", async (seed) => {
    const roll = dice(seed);
    const clock = { now: () => Date.now() };
    const { endpoint, attempts } = flapping(roll, () => clock.now());
    const outbox = await Outbox.open({ webhookUrl: endpoint.url });
    clock.now = () => outbox.now;
    const start = outbox.now;
    const hours = new SimulatedHours(outbox, roll);
    const births = Array.from({ length: EVENTS }, () => start + Math.floor(roll() * 10 * HOUR)).sort((a, b) => a - b);
    for (let waiting = births; waiting.length > 0; ) {
      hours.skipTo(waiting);
      expect(outbox.now - start, "it goes on for ever").toBeLessThan(200 * HOUR);
      for (; births[0] !== undefined && births[0] <= outbox.now; births.shift()) await outbox.issue();
      await hours.runMinute();
      const pending = (await outbox.events()).filter(({ state }) => state === "pending");
      waiting = [...births, ...pending.map(({ dueAt }) => dueAt ?? outbox.now)];
    }

    const rows = await outbox.events();
    expect(rows).toHaveLength(EVENTS);
    expect(attempts.length, "a run without trouble proves nothing").toBeGreaterThan(EVENTS);
    for (const row of rows)
      expectInvariants(
        row,
        attempts.filter(({ eventId }) => eventId === row.id),
      );
  });
});

/** Contract section 8: 5 s, 1 m, 5 m, 30 m, 2 h, 5 h, then 7 × 10 h. */
const RETRY_DELAYS_SECONDS = [5, 60, 300, 1800, 7200, 18_000, ...Array.from({ length: 7 }, () => 36_000)];

function expectInvariants(row: EventRow, attempts: readonly Attempt[]): void {
  const successes = attempts.filter(({ status }) => status === 200);
  // It arrives once, as the last attempt, unless the receiver was out of order at all of its times.
  const isDelivered = successes.length > 0;
  expect(row.state).toBe(isDelivered ? "delivered" : "exhausted");
  expect(successes).toEqual(isDelivered ? attempts.slice(-1) : []);
  expect(row.attempts).toBe(attempts.length);
  const mostAttempts = RETRY_DELAYS_SECONDS.length + 1;
  if (isDelivered) expect(attempts.length).toBeLessThanOrEqual(mostAttempts);
  else expect(attempts).toHaveLength(mostAttempts);
  expect((attempts[0]?.at ?? Number.NaN) - row.createdAt).toBeLessThanOrEqual(12 * MINUTE);
  attempts.forEach(({ at, status }, index) => {
    const next = attempts[index + 1];
    if (next === undefined) return;
    const delay = (RETRY_DELAYS_SECONDS[index] ?? 0) * 1000;
    const least = status === 429 ? Math.max(delay, MINUTE) : delay;
    expect(next.at - at).toBeGreaterThanOrEqual(least);
    // Jitter, the largest Retry-After of this receiver, and some minutes until a sweep's message comes.
    expect(next.at - at).toBeLessThanOrEqual(Math.max(least * 1.1, status === 503 ? 20_000_000 : 0) + 15 * MINUTE);
  });
}
