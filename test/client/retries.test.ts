import { describe, expect, it } from "vitest";
import { type DeviceClient, NoResponseError, type ServerClient } from "../../src/client/index.ts";
import { waitBeforeRetry } from "../../src/client/retry.ts";
import { applicationId } from "../../src/shared/identifiers.ts";
import {
  collect,
  device,
  EXISTING_BADGE,
  type FakeService,
  fakeService,
  NO_NETWORK,
  RATE_LIMITED,
  refusal,
  SIGNATURE,
  server,
  UNAVAILABLE,
} from "./support.ts";

const NOBODY = { id: applicationId.parse("app"), secret: "bdss_x", firstNumber: 1, lastNumber: 1 };
const BAD_GATEWAY = new Response("<html>", { status: 502 });
const BUSY_GATEWAY = new Response("<html>", { status: 503, headers: { "retry-after": "1" } });
const PROXY_LIMIT = new Response("<html>", { status: 429 });
const REVOKED = Response.json({ id: "i", badgeId: "7", expiresAt: "2030", revokedAt: "2029" });

const BADGE = Response.json({ id: "7", userId: "a", state: "active", issuedAt: "2030", changedAt: "2030" });
const NO_CHANGES = Response.json({ changes: [], more: false }, { headers: { "pagination-cursor": "c" } });
const REPLAYED = Response.json({ id: "evt_1", state: "pending" }, { status: 202 });
const ERASED = Response.json({ badgeId: "7" });
const INVITATION = Response.json({ id: "inv_1", badgeId: "7", expiresAt: "2030-01-01T00:00:00Z" }, { status: 201 });
const BLOCKED = Response.json({ userId: "a", blocked: true, revoked: [] });

const byPhone = (call: (client: DeviceClient) => Promise<unknown>) => (fake: FakeService) => call(phone(fake));
const byServer = (call: (client: ServerClient) => Promise<unknown>) => (fake: FakeService) =>
  call(server(NOBODY, fake.options));

/** Calls of every kind, each with a successful response. */
const REPEATABLE: [name: string, success: Response, call: (fake: FakeService) => Promise<unknown>][] = [
  ["requestBadge", EXISTING_BADGE, byPhone((client) => client.requestBadge({ userId: "a" }))],
  ["sign", SIGNATURE, byPhone((client) => client.sign("aGVsbG8="))],
  ["listBadges", Response.json({ badges: [] }), byServer((client) => collect(client.listBadges()))],
  ["revokeInvitation", REVOKED, byServer((client) => client.revokeInvitation("inv"))],
  ["eraseInvitation", ERASED, byServer((client) => client.eraseInvitation("inv_7"))],
  ["createInvitation", INVITATION, (fake) => invite(fake)],
  ["suspendBadge", BADGE, byServer((client) => client.suspendBadge("7"))],
  ["rebindBadge with ifChange", BADGE, byServer((client) => client.rebindBadge("7", { ifChange: 3 }))],
  ["setBadgeEnd", BADGE, byServer((client) => client.setBadgeEnd("7", new Date(0)))],
  ["blockUser", BLOCKED, byServer((client) => client.blockUser("a"))],
  ["changes", NO_CHANGES, byServer((client) => collect(client.changes()))],
  ["replayEvent", REPLAYED, byServer((client) => client.replayEvent("evt_1"))],
];

const phone = (fake: FakeService) => device(NOBODY, "phone", fake.options);
const invite = (fake: FakeService, key: { idempotencyKey?: string } = {}) =>
  server(NOBODY, fake.options).createInvitation({ expiresAt: "2030", udid: "desk", ...key });

describe("a request that may be repeated", () => {
  it.each(REPEATABLE)("%s is sent again, as it was, when there is no response", async (_call, success, call) => {
    const fake = fakeService(NO_NETWORK, success);
    await call(fake);
    expect(fake.requests).toHaveLength(2);
    expect(fake.requests[1]).toEqual(fake.requests[0]);
  });

  it.each([
    ["429 RATE_LIMITED", RATE_LIMITED, 60_249],
    ["503 UNAVAILABLE", UNAVAILABLE, 2_249],
    ["a gateway's 502", BAD_GATEWAY, 249],
    ["a gateway's 503 with Retry-After", BUSY_GATEWAY, 1_249],
    ["a gateway's 500", new Response("<html>", { status: 500 }), 249],
    ["a proxy's 429", PROXY_LIMIT, 249],
  ])("a request is sent again after %s, when the wait is over", async (_name, failure, wait) => {
    const fake = fakeService(failure, SIGNATURE);
    await phone(fake).sign("aGVsbG8=");
    expect([fake.requests.length, fake.waits]).toEqual([2, [wait]]);
  });

  it("a date in Retry-After counts from the date of the response, whatever the device's clock says", async () => {
    const [date, time] = ["Fri, 15 Jan 2027 08:00:00 GMT", "Fri, 15 Jan 2027 08:00:30 GMT"];
    for (const now of [0, 1, 2].map((days) => Date.parse(date) + (days - 1) * 86_400_000)) {
      const fake = fakeService(
        new Response("<html>", { status: 503, headers: { date, "retry-after": time } }),
        SIGNATURE,
      );
      await device(NOBODY, "phone", { ...fake.options, now: () => now }).sign("aGVsbG8=");
      expect(fake.waits).toEqual([30_249]);
    }
  });

  it("a request is sent at most four times in all, with growing delays", async () => {
    const fake = fakeService(NO_NETWORK);
    await expect(phone(fake).sign("aGVsbG8=")).rejects.toBeInstanceOf(NoResponseError);
    expect(fake.requests).toHaveLength(4);
    expect(fake.waits).toEqual([249, 499, 999]);
  });

  it.each([
    ["NUMBERS_EXHAUSTED, which waiting does not fix", refusal(503, "NUMBERS_EXHAUSTED")],
    ["500 INTERNAL_ERROR", refusal(500, "INTERNAL_ERROR")],
    ["503 UNAVAILABLE without Retry-After", refusal(503, "UNAVAILABLE")],
    ["a Retry-After over 60 s", refusal(503, "UNAVAILABLE", { "retry-after": "61" })],
    ["a proxy's 403", new Response("<html>", { status: 403 })],
    ["a response that it cannot read", Response.json({}, { status: 201 })],
  ])("a request is not sent again after %s", async (_name, failure) => {
    const fake = fakeService(failure, SIGNATURE);
    const call = phone(fake).sign("aGVsbG8=");
    await expect(call).rejects.toMatchObject({ name: "BadgeServiceError", status: failure.status });
    expect(fake.requests).toHaveLength(1);
  });
});

/** Another invitation may have the number by the time of a retry, or the phone its new key. */
it.each([
  ["revokeInvitation by number", REVOKED, byServer((client) => client.revokeInvitation("7"))],
  ["eraseInvitation by number", ERASED, byServer((client) => client.eraseInvitation("7"))],
  ["rebindBadge without ifChange", BADGE, byServer((client) => client.rebindBadge("7"))],
  ["suspendBadge with ifChange", BADGE, byServer((client) => client.suspendBadge("7", { ifChange: 3 }))],
  ["setBadgeEnd with ifChange", BADGE, byServer((client) => client.setBadgeEnd("7", null, { ifChange: 3 }))],
] as const)(
  "%s is sent again only after 429 RATE_LIMITED, since the service has then done nothing (contract sections 12, 15 and 24)",
  async (_, success, call) => {
    for (const failure of [NO_NETWORK, UNAVAILABLE, BAD_GATEWAY, PROXY_LIMIT]) {
      const fake = fakeService(failure, success);
      await expect(call(fake)).rejects.toThrow();
      expect(fake.requests).toHaveLength(1);
    }
    const fake = fakeService(RATE_LIMITED, success);
    await call(fake);
    expect([fake.requests.length, fake.waits]).toEqual([2, [60_249]]);
  },
);

describe("the Idempotency-Key of createInvitation (contract section 12)", () => {
  const keysOf = (fake: FakeService) => fake.requests.map(({ init }) => init.headers["idempotency-key"]);

  it("the Idempotency-Key is random, new for each call, and the same on every try of a call", async () => {
    const fake = fakeService(UNAVAILABLE, INVITATION, NO_NETWORK, INVITATION);
    await invite(fake);
    await invite(fake);
    const [first, second, third, fourth] = keysOf(fake);
    expect(first).toMatch(/^[0-9a-f-]{36}$/);
    expect([second, fourth]).toEqual([first, third]);
    expect(third).not.toBe(first);
  });

  it("the caller's own Idempotency-Key is sent, unless it is blank, which the service would ignore", async () => {
    const fake = fakeService(BAD_GATEWAY, INVITATION);
    await expect(invite(fake, { idempotencyKey: "  " })).rejects.toThrow(RangeError);
    await invite(fake, { idempotencyKey: "visit 7" });
    expect(keysOf(fake)).toEqual(["visit 7", "visit 7"]);
  });
});

describe("the retry options", () => {
  it("a Retry-After over maxRetryAfterSeconds fails the call, with the seconds in the error", async () => {
    const fake = fakeService(RATE_LIMITED, SIGNATURE);
    const call = device(NOBODY, "phone", { ...fake.options, maxRetryAfterSeconds: 59 }).sign("aGVsbG8=");
    await expect(call).rejects.toMatchObject({ code: "RATE_LIMITED", retryAfterSeconds: 60 });
    expect(fake.requests).toHaveLength(1);
  });

  it("a try that exceeds the time limit counts as no response", async () => {
    const fake = fakeService(
      (_url, { signal }) => new Promise((_resolve, reject) => signal?.addEventListener("abort", reject)),
      SIGNATURE,
    );
    expect(await device(NOBODY, "phone", { ...fake.options, timeoutMilliseconds: 5 }).sign("aGVsbG8=")).toBe("a.b.c");
    expect(fake.requests).toHaveLength(2);
  });

  it("a Retry-After that no timer can hold fails the call, however long it may wait", async () => {
    const fake = fakeService(refusal(503, "UNAVAILABLE", { "retry-after": "2592000" }), SIGNATURE);
    const options = { ...fake.options, maxRetryAfterSeconds: Number.POSITIVE_INFINITY };
    await expect(device(NOBODY, "phone", options).sign("aGVsbG8=")).rejects.toMatchObject({
      code: "UNAVAILABLE",
      retryAfterSeconds: 2_592_000,
    });
    expect(fake.waits).toEqual([]);
  });

  it.each([{ maxTries: 0 }, { maxTries: Number.NaN }, { timeoutMilliseconds: 0 }, { maxRetryAfterSeconds: -1 }])(
    "the retry options refuse %j",
    (options) => {
      expect(() => device(NOBODY, "phone", options)).toThrow(RangeError);
    },
  );
});

describe("aborting", () => {
  it("aborting during a try ends it, and no retry follows", async () => {
    const controller = new AbortController();
    const fake = fakeService((_url, { signal }) => {
      queueMicrotask(() => controller.abort(new Error("enough")));
      return new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    });
    await expect(phone(fake).sign("aGVsbG8=", { signal: controller.signal })).rejects.toThrow("enough");
    expect(fake.requests).toHaveLength(1);
  });

  it("aborting ends the wait between two tries", async () => {
    const controller = new AbortController();
    const fake = fakeService(async () => {
      setTimeout(() => controller.abort(new Error("enough")));
      return RATE_LIMITED.clone();
    });
    const { fetch } = fake.options;
    const call = device(NOBODY, "phone", { fetch }).sign("aGVsbG8=", { signal: controller.signal });
    await expect(call).rejects.toThrow("enough");
    expect(fake.requests).toHaveLength(1);
  });
});

it("the wait is a random part of a ceiling that doubles with every try, up to eight seconds", () => {
  const failure = { error: new NoResponseError(null), maxTries: 100, maxRetryAfterSeconds: 60, isRepeatable: true };
  const waits = [1, 2, 5, 6, 60].map((tries) => waitBeforeRetry({ ...failure, tries, random: 0.5 }));
  expect(waits).toEqual([125, 250, 2000, 4000, 4000]);
});
