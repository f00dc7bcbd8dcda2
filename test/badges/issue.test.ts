import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import worker from "../../src/worker/index.ts";
import { tally, times } from "../http/support/draft.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { UNLIMITED } from "../support/bindings.ts";
import { HOUR, moveClock } from "../support/clock.ts";
import { byEffort } from "../support/effort.ts";
import { type Answer, callServer, outcome, requestBadge } from "../support/http.ts";
import { log } from "../support/log.ts";
import { objectsSendTo, queueThat } from "../support/queue.ts";
import { badgeRows, eventRows } from "../support/rows.ts";
import { numberOf, requestQuietly, WEBHOOK_URL } from "./support.ts";

/** More than one group; a group is at most 100 calls. */
const MANY = byEffort(120, 1000);

it("every combination of application, udid and user first gets 201 with its own number, then always 200 with the same (contract section 1)", async () => {
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
  const ask = () => Promise.all(keys.map(([application, udid, userId]) => requestBadge(application, udid, { userId })));
  const first = await ask();
  expect(tally(first.map(outcome))).toEqual({ 201: keys.length });
  for (const { body } of first) expect(Object.keys(body).sort()).toEqual(["badgeId", "publicKey"]);
  expect(new Set(first.map(numberOf)).size).toBe(keys.length);
  for (const _ of [1, 2]) {
    const again = first.map(({ body: { badgeId } }) => [200, { badgeId }]);
    expect((await ask()).map(({ status, body }) => [status, body])).toEqual(again);
  }
});

describe("requests that race (contract section 1)", () => {
  it(`${MANY} concurrent devices get as many numbers`, { timeout: 180_000 }, async () => {
    const application = await createApplication();
    // As a phone does: on a busy machine a thousand calls take longer than one call may.
    const ask = async (place: number): Promise<Answer> => {
      const answer = await requestQuietly(application, `device-${place}`, { userId: "alice" });
      return answer.status === 503 ? ask(place) : answer;
    };
    const answers = await Promise.all(times(MANY).map(ask));
    expect(answers.every(({ status }) => status === 201 || status === 200)).toBe(true);
    const numbers = answers.map(numberOf);
    expect(new Set(numbers).size).toBe(MANY);
    const rows = await badgeRows(application);
    expect(rows.map(({ number }) => number)).toEqual(numbers.sort((left, right) => left - right));
    expect(new Set(rows.map(({ ordinal }) => ordinal))).toEqual(new Set(rows.map((_, place) => place + 1)));
  });

  it("one user device gets one number and one event, however many of its requests are concurrent", async () => {
    const application = await createApplication({ webhookUrl: WEBHOOK_URL });
    const answers = await Promise.all(
      times(MANY).map(() => requestQuietly(application, "device", { userId: "alice" })),
    );
    expect(tally(answers.map(outcome))).toEqual({ 200: MANY - 1, 201: 1 });
    expect(new Set(answers.map(numberOf)).size).toBe(1);
    expect(await badgeRows(application)).toHaveLength(1);
    expect(await eventRows(application)).toHaveLength(1);
  });
});

it("a call gets its response before the queue has accepted the wake-up", async () => {
  const application = await createApplication({ webhookUrl: WEBHOOK_URL });
  const taken = Promise.withResolvers<void>();
  objectsSendTo(queueThat(() => taken.promise));
  const execution = createExecutionContext();
  const init = { method: "POST", headers: { applicationid: application.id, udid: "new" }, body: '{"userId":"bob"}' };
  const request = new Request("https://badges.example/v1/badge", init);
  const bindings = { ...env, DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED };
  expect((await worker.fetch(request, bindings, execution)).status).toBe(201);
  taken.resolve();
  await waitOnExecutionContext(execution);
});

it("the first call that an application's hourly limit of new badges refuses is logged, once; requests with the secret are neither limited nor counted (contract section 7)", async () => {
  const application = await createApplication({ newBadgesPerHour: 1 });
  const lines = () => log.lines().filter(({ event }) => event === "new-badges-limited");
  const byPhone = async (udid: string) => outcome(await requestBadge(application, udid, { userId: "ada" }));
  const byServer = async (udid: string) =>
    outcome(await callServer(application, "POST", "/v1/badge", { userId: "ada" }, { udid }));
  expect([await byServer("one"), await byServer("two"), await byPhone("three")]).toEqual(["201", "201", "201"]);
  expect(lines()).toEqual([]);
  for (const udid of ["four", "five"]) expect(await byPhone(udid)).toBe("429 RATE_LIMITED");
  expect(await byServer("six")).toBe("201");
  expect(lines()).toMatchObject([{ level: "warn", application: application.id, newBadgesPerHour: 1 }]);
  // Once in each hour.
  onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ["Date"] });
  moveClock(HOUR);
  expect([await byPhone("seven"), await byPhone("eight")]).toEqual(["201", "429 RATE_LIMITED"]);
  expect(lines()).toHaveLength(2);
});
