import { env } from "cloudflare:workers";
import { describe, expect, it, onTestFinished, test, vi } from "vitest";
import { createContext } from "../../src/worker/context.ts";
import { addSecret } from "../support/application.ts";
import { DAY } from "../support/clock.ts";
import { boundHome } from "../support/home.ts";
import { log } from "../support/log.ts";
import { Outbox } from "../support/outbox.ts";
import { type Answering, answer, hangs, type Receiver } from "../support/receivers.ts";
import { useOutboxes } from "./support.ts";

const { open, receiver } = useOutboxes();
/** Fifteen seconds pass at once. */
function timeoutsAreQuick(): void {
  vi.spyOn(AbortSignal, "timeout").mockImplementation((milliseconds) => {
    expect(milliseconds).toBe(15_000);
    const controller = new AbortController();
    setTimeout(() => controller.abort(new DOMException("too slow", "TimeoutError")), 10);
    return controller.signal;
  });
}

const breaks: Answering = () => Promise.reject(new TypeError("Network connection lost."));

async function deliverOnce(answering: Answering) {
  const { endpoint, outbox } = await open(answering);
  const event = await outbox.issue();
  const attemptedAt = outbox.now;
  await outbox.deliver(event);
  const row = await outbox.event(event);
  const waitMilliseconds = (row.dueAt ?? Number.NaN) - attemptedAt;
  return { endpoint, outbox, event, row, waitSeconds: waitMilliseconds / 1000 };
}

describe("a response other than 2xx is retried later (contract section 8)", () => {
  test.each<[string, Answering, number, Record<string, unknown>]>([
    ["a server error", () => answer(500), 5, { lastStatus: 500, lastOutcome: "answered" }],
    ["a host that is not found, or no TLS", breaks, 5, { lastStatus: null, lastOutcome: "network" }],
    ["no answer in 15 s", hangs, 60, { lastStatus: null, lastOutcome: "timeout" }],
    ["429 with a short Retry-After", () => answer(429, { "Retry-After": "1" }), 60, { lastStatus: 429 }],
    ["503 with a Retry-After in seconds", () => answer(503, { "Retry-After": "1800" }), 1800, { lastStatus: 503 }],
  ])("after %s", async (_, answering, seconds, kept) => {
    timeoutsAreQuick();
    const { outbox, event, row, waitSeconds } = await deliverOnce(answering);
    expect(row).toMatchObject({ state: "pending", attempts: 1, ...kept });
    expect(waitSeconds).toBeGreaterThanOrEqual(seconds);
    expect(waitSeconds).toBeLessThanOrEqual(seconds * 1.1);
    // A short wait is the queue's, a long one the sweep's; the queue never brings the event too early.
    const [, later] = outbox.queue.sent;
    if (seconds > 120) expect(later).toBeUndefined();
    else
      expect(later).toEqual({
        body: { applicationId: outbox.application.id, eventId: event },
        delaySeconds: Math.ceil(waitSeconds),
      });
    outbox.now = (await outbox.dueTime(event)) - 1;
    expect(await outbox.sweep()).toEqual([]);
    outbox.now += 1;
    expect(await outbox.sweep()).toEqual([event]);
  });

  it("an attempt's duration in milliseconds is stored (section 10)", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const { row } = await deliverOnce(() => {
      vi.setSystemTime(Date.now() + 1234);
      return answer(500);
    });
    expect(row.lastMilliseconds).toBe(1234);
  });

  it("a webhook is retried after a redirect, which is not followed", async () => {
    const elsewhere = receiver();
    const { endpoint, row } = await deliverOnce(() => answer(307, { Location: elsewhere.url }));
    expect(row).toMatchObject({ state: "pending", attempts: 1, lastStatus: 307 });
    expect(endpoint.received.map(({ redirect }) => redirect)).toEqual(["manual"]);
    expect(elsewhere.received).toEqual([]);
  });

  it("an event that is not accepted gets up to 14 attempts; then it is exhausted, and is kept and not sent again", async () => {
    const { endpoint, outbox, event, row } = await deliverOnce(() => answer(500, {}, "out of order"));
    const start = row.createdAt;
    for (let attempt = 2; attempt <= 14; attempt++) {
      outbox.now = await outbox.dueTime(event);
      await outbox.deliver(event);
    }
    const exhausted = { state: "exhausted", attempts: 14, lastStatus: 500, lastResponse: "out of order" };
    expect(await outbox.event(event)).toMatchObject({ ...exhausted, payload: row.payload });
    const hours = (outbox.now - start) / 3_600_000;
    expect(hours).toBeGreaterThan(77);
    expect(hours).toBeLessThan(77.7 * 1.1);
    outbox.now += DAY;
    await outbox.deliver(event);
    expect(await outbox.sweep()).toEqual([]);
    expect(endpoint.received).toHaveLength(14);
    expect(new Set(endpoint.received.map(({ text }) => text))).toEqual(new Set([row.payload]));
  });
});

describe("the URL is checked again before every attempt (contract section 8)", () => {
  it("a URL that was written into D1 directly is not called, and counts as a failed attempt", async () => {
    const outbox = await Outbox.open({ webhookUrl: "https://169.254.169.254/latest/meta-data/" });
    const event = await outbox.issue();
    await outbox.deliver(event);
    expect(globalThis.fetch).not.toHaveBeenCalled();
    expect(await outbox.event(event)).toMatchObject({ attempts: 1, lastOutcome: "refused:ip-literal" });
  });

  it("a receiver on this machine gets no request from a deployed service, and one from a local one, as the variable ENVIRONMENT says", async () => {
    const outbox = await Outbox.open({ webhookUrl: "http://localhost:8080/hook" });
    const event = await outbox.issue();
    const deliverIn = async (environment: Env["ENVIRONMENT"]) => {
      const { isLocal } = createContext({ ...env, ENVIRONMENT: environment }, () => {}, boundHome());
      outbox.context = { ...outbox.context, isLocal };
      await outbox.deliver(event);
      return outbox.event(event);
    };
    expect(await deliverIn("production")).toMatchObject({ state: "pending", lastOutcome: "refused:local-only" });
    expect(globalThis.fetch).not.toHaveBeenCalled();
    outbox.now += DAY;
    // Nobody listens there in this test.
    expect(await deliverIn("local")).toMatchObject({ attempts: 2, lastOutcome: "network" });
  });
});

/** A body in chunks, which the abort of the request ends as it does on the platform. */
function stream(signal: AbortSignal, pull: (controller: ReadableStreamDefaultController<Uint8Array>) => void) {
  const state = { read: 0, cancelled: false };
  const body = new ReadableStream<Uint8Array>(
    {
      start: (controller) => signal.addEventListener("abort", () => controller.error(signal.reason)),
      pull: (controller) => {
        state.read++;
        pull(controller);
      },
      cancel: () => {
        state.cancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { body, state };
}

describe("only the status of a response counts (contract section 8)", () => {
  it("an endless body is read up to 16 KiB and cancelled, and 1 KiB of it is stored", async () => {
    const chunk = new TextEncoder().encode("ä".repeat(512));
    let endless: ReturnType<typeof stream> | undefined;
    const { row } = await deliverOnce((_received, _attempt, signal) => {
      endless = stream(signal, (controller) => controller.enqueue(chunk.slice()));
      return answer(200, {}, endless.body);
    });
    expect(row).toMatchObject({ state: "delivered", lastResponse: "ä".repeat(1024 / 2) });
    expect(endless?.state).toEqual({ read: 16_384 / chunk.byteLength, cancelled: true });
  });

  it("a body that hangs after its first bytes takes the whole time limit, and the event is delivered", async () => {
    timeoutsAreQuick();
    const { row } = await deliverOnce((_received, _attempt, signal) => {
      let begun = false;
      const { body } = stream(signal, (controller) => {
        if (!begun) controller.enqueue(new TextEncoder().encode("thanks"));
        begun = true;
      });
      return answer(202, {}, body);
    });
    expect(row).toMatchObject({ state: "delivered", lastStatus: 202, lastResponse: "thanks" });
  });

  it("the stored text can be printed on a terminal and has no partial character", async () => {
    const text = `\u001b[31m\u0000\r\n\u202eevil${"€".repeat(1000)}`;
    const { row } = await deliverOnce(() => answer(500, {}, text));
    expect(row.lastResponse).toMatch(/^ \[31m {4}evil€+$/);
    const bytes = new TextEncoder().encode(row.lastResponse ?? "").byteLength;
    expect(bytes).toBeGreaterThan(1024 - 3);
    expect(bytes).toBeLessThanOrEqual(1024);
  });
});

describe("no secret or signature is stored or logged (contract section 9)", () => {
  const DISGUISES: [string, (value: string) => string][] = [
    ["as they are", (value) => value],
    ["in a URL", encodeURIComponent],
    ["in HTML", (value) => value.replaceAll("=", "&#61;").replaceAll("+", "&#43;").replaceAll("/", "&#x2F;")],
    ["between spaces", (value) => value.replaceAll(/[+/=,]/g, " ")],
  ];

  /** Runs of letters and digits that give a signature away. */
  const tellingPieces = (signature: string) => signature.split(/[^A-Za-z0-9]+/).filter((piece) => piece.length > 3);

  function sentSignatures({ received }: Receiver): string[] {
    return received.flatMap(({ headers }) => [headers.get("signature") ?? "", headers.get("webhook-signature") ?? ""]);
  }

  test.each(DISGUISES)("an answer that shows our headers %s is kept without the signatures", async (_, disguise) => {
    const { endpoint, outbox } = await open(({ headers }) => {
      const shown = [...headers].map(([name, value]) => `${name}: ${disguise(value)}`);
      return answer(500, {}, `You sent ${shown.join("; ")} - no.`);
    });
    await addSecret(outbox.application, "added");
    const event = await outbox.issue();
    await outbox.deliver(event);
    const kept = (await outbox.event(event)).lastResponse ?? "";
    expect(kept).toContain(`You sent content-type: ${disguise("application/json")}; signature: `);
    expect(kept).toContain(event);
    expect(kept).toMatch(/ - no\.$/);
    const pieces = sentSignatures(endpoint).flatMap(tellingPieces);
    expect(pieces.length).toBeGreaterThanOrEqual(3);
    for (const piece of pieces) expect(kept).not.toContain(piece);
  });

  it("neither logs nor queue messages hold a secret, a signature, a URL, a user or a device", async () => {
    timeoutsAreQuick();
    const secretPath = "c0ffee-token";
    const outcomes: Answering[] = [() => answer(500), breaks, hangs, () => answer(302), () => answer(200)];
    const { endpoint, outbox } = await open((received, attempt, signal) => {
      const outcome = outcomes[attempt - 1] ?? breaks;
      return outcome(received, attempt, signal);
    });
    const event = await outbox.issue("alice-4711", '{"deviceModel":"Pixel 12"}');
    for (const _ of outcomes) {
      await outbox.deliver(event);
      outbox.now += DAY;
      await outbox.sweep();
    }
    await outbox.setUrl(`https://10.0.0.1/${secretPath}`);
    await outbox.deliver(await outbox.issue("alice-4711b"));
    await outbox.setUrl(endpoint.url);
    vi.spyOn(outbox.context.unsealedKeys, "webhookKey").mockRejectedValue(new Error("sealed by another key"));
    await outbox.deliver(await outbox.issue("alice-4711c"));
    const said = JSON.stringify([log.lines(), outbox.queue.sent]);
    expect(said).toContain('"event":"delivery"');
    expect(said).toContain('"event":"webhook-secret-unusable"');
    const { secret } = outbox.application;
    const taboo = [secret, endpoint.url, new URL(endpoint.url).host, secretPath, "alice-4711", "Pixel", "device of"];
    for (const text of [...taboo, ...sentSignatures(endpoint)]) expect(said).not.toContain(text);
    const fields = new Set(outbox.queue.sent.flatMap(({ body }) => Object.keys(body)));
    expect([...fields].sort()).toEqual(["afterMilliseconds", "applicationId", "eventId"]);
    expect(JSON.stringify(await outbox.events())).not.toContain(secret);
  });
});
