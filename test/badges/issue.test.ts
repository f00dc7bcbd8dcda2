import { decodeJwt } from "jose";
import { describe, expect, it } from "vitest";
import { useQuietLog } from "../invitations/support/log.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { byEffort } from "../support/effort.ts";
import { type Answer, call, callServer, requestBadge, sign } from "../support/http.ts";
import { badgeRows, eventRows } from "../support/rows.ts";
import { countStatuses, expectDifferent, inParallel, numberOf, requestQuietly, WEBHOOK_URL } from "./support.ts";

useQuietLog();

/** POST /v1/badge from a client address of its own, so that many devices stay below the limit of each address. */
function requestFrom(application: { id: string }, place: number, udid: string, userId: string): Promise<Answer> {
  const ip = `198.51.${Math.floor(place / 100)}.${place % 100}`;
  const headers = { applicationid: application.id, udid, "cf-connecting-ip": ip };
  return call("POST", "/v1/badge", { headers, body: { userId } });
}

/** More than two groups; a group is at most 100 calls. */
const MANY = byEffort(250, 1000);

/** One number for all of them: new once, and once only. */
function expectOneNumber(answers: readonly Answer[]): void {
  expect(countStatuses(answers)).toEqual({ 200: answers.length - 1, 201: 1 });
  expect(new Set(answers.map(({ body }) => body.badgeId)).size).toBe(1);
}

/** The badge that signing uses for a device. */
async function currentBadge(application: { id: string }, udid: string): Promise<unknown> {
  const { status, body } = await sign(application, udid, { base64: "aGVsbG8=" });
  expect(status).toBe(200);
  return decodeJwt(String(body.signature)).sub;
}

async function listed(application: TestApplication): Promise<unknown> {
  return (await callServer(application, "GET", "/v1/badges")).body.badges;
}

describe("a user device and its badge (contract section 1)", () => {
  it("a user device first gets 201 with a number and public key, then always 200 with the same number", async () => {
    const application = await createApplication();
    const first = await requestBadge(application, "device-1", { userId: "alice" });
    expect(first.status).toBe(201);
    expect(Object.keys(first.body).sort()).toEqual(["badgeId", "publicKey"]);
    const { badgeId } = first.body;
    for (const _ of [1, 2, 3]) {
      const later = await requestBadge(application, "device-1", { userId: "alice" });
      expect(later).toMatchObject({ status: 200, body: { badgeId } });
      expect(Object.keys(later.body)).toEqual(["badgeId"]);
    }
    expect(await listed(application)).toEqual([{ id: badgeId, userId: "alice" }]);
  });

  it("every combination of application, udid and user has its own number", async () => {
    const [one, two] = [await createApplication(), await createApplication()];
    const keys: [TestApplication, string, string][] = [
      [one, "device", "alice"],
      [one, "device", "bob"],
      [one, "device", "Alice"],
      [one, "device", " alice"],
      [one, "device", "caf\u00e9"],
      [one, "device", "cafe\u0301"],
      [one, "device", "device:alice"],
      [one, "Device", "alice"],
      [one, "device:alice", "alice"],
      [two, "device", "alice"],
    ];
    const ask = () =>
      Promise.all(keys.map(([application, udid, userId]) => requestBadge(application, udid, { userId })));
    const first = await ask();
    expect(countStatuses(first)).toEqual({ 201: keys.length });
    expect(new Set(first.map(({ body }) => body.badgeId)).size).toBe(keys.length);
    const second = await ask();
    expect(second.map(({ status, body }) => [status, body.badgeId])).toEqual(
      first.map(({ body }) => [200, body.badgeId]),
    );
  });
});

describe("requests that race (contract section 1)", () => {
  it(`${MANY} concurrent devices get as many numbers`, { timeout: 180_000 }, async () => {
    const application = await createApplication();
    // As a phone does: on a busy machine a thousand calls take longer than one call may.
    const ask = async (index: number): Promise<Answer> => {
      const answer = await requestFrom(application, index, `device-${index}`, "alice");
      return answer.status === 503 ? ask(index) : answer;
    };
    const answers = await inParallel(MANY, ask);
    expect(answers.every(({ status }) => status === 201 || status === 200)).toBe(true);
    const numbers = answers.map(numberOf);
    expect(new Set(numbers).size).toBe(MANY);
    const rows = await badgeRows(application);
    expect(rows.map(({ number }) => number)).toEqual(numbers.sort((left, right) => left - right));
    expect(new Set(rows.map(({ ordinal }) => ordinal))).toEqual(new Set(rows.map((_, place) => place + 1)));
  });

  it("one user device gets one number and one event, however many of its requests are concurrent", async () => {
    const application = await createApplication({ webhookUrl: WEBHOOK_URL });
    expectOneNumber(await inParallel(200, () => requestQuietly(application, "device", { userId: "alice" })));
    expect(await badgeRows(application)).toHaveLength(1);
    expect(await eventRows(application)).toHaveLength(1);
  });

  it("ten concurrent applications get numbers from their own ranges, down to the last number", async () => {
    const applications = await Promise.all(Array.from({ length: 10 }, () => createApplication({ size: 8 })));
    const answers = await Promise.all(
      applications.map((application) =>
        inParallel(8, (place) => requestBadge(application, `device-${place}`, { userId: "alice" })),
      ),
    );
    const numbers = applications.flatMap((application, place) => expectDifferent(answers[place] ?? [], application));
    expect(new Set(numbers).size).toBe(80);
    const refused = await Promise.all(
      applications.map((application) => requestBadge(application, "one-more", { userId: "alice" })),
    );
    expect(refused.map(({ status, body }) => [status, body.error])).toEqual(
      applications.map(() => [503, "NUMBERS_EXHAUSTED"]),
    );
    const [first] = applications;
    expect(first && (await requestBadge(first, "device-3", { userId: "alice" })).status).toBe(200);
  });

  it("each user of one device gets a different number, and then finds it again", async () => {
    const application = await createApplication();
    const ask = (place: number) => requestBadge(application, "device", { userId: `user-${place}` });
    const numbers = expectDifferent(await inParallel(20, ask), application).map(String);
    expect(numbers).toContain(await currentBadge(application, "device"));
    for (const place of [7, 0, 19]) {
      expect(await ask(place)).toMatchObject({ status: 200, body: { badgeId: numbers[place] } });
      expect(await currentBadge(application, "device")).toBe(numbers[place]);
    }
  });
});

describe("the device's current badge (contract section 1)", () => {
  it("the device's current badge is that of its last successful request", async () => {
    const application = await createApplication();
    const ask = async (userId: string) => (await requestBadge(application, "device", { userId })).body.badgeId;
    const [alice, bob] = [await ask("alice"), await ask("bob")];
    expect(alice).not.toBe(bob);
    expect(await currentBadge(application, "device")).toBe(bob);
    expect(await ask("alice")).toBe(alice);
    expect(await currentBadge(application, "device")).toBe(alice);
    expect((await requestBadge(application, "device", { userId: "b".repeat(256) })).status).toBe(422);
    expect((await requestBadge(application, "other-device", { userId: "bob" })).status).toBe(201);
    expect(await currentBadge(application, "device")).toBe(alice);
    expect(await ask("bob")).toBe(bob);
    expect(await currentBadge(application, "device")).toBe(bob);
  });
});

describe("metadata (contract sections 1 and 7)", () => {
  it("new metadata changes one badge only; equal metadata in another order or with an unknown field is no change", async () => {
    const application = await createApplication();
    const ask = (userId: string, metadata?: unknown) => requestBadge(application, "device", { userId, metadata });
    for (const userId of ["alice", "bob"]) await ask(userId);
    const metadata = { os: "iOS", deviceModel: "iPhone 18", sdkVersion: "1.0" };
    await ask("alice", metadata);
    const rows = await badgeRows(application);
    const reordered = { other: "field", sdkVersion: "1.0", deviceModel: "iPhone 18", os: "iOS" };
    expect((await ask("alice", reordered)).status).toBe(200);
    expect(await badgeRows(application)).toEqual(rows);
    expect(await listed(application)).toEqual([
      { id: expect.any(String), userId: "alice", metadata },
      { id: expect.any(String), userId: "bob" },
    ]);
  });
});
