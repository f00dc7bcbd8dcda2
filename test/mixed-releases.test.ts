import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, onTestFinished } from "vitest";
import { Allocator } from "../src/worker/allocator/allocator.ts";
import worker from "../src/worker/index.ts";
import { Live } from "../src/worker/live/live.ts";
import { HomeScheduler } from "../src/worker/scheduling/home-scheduler.ts";
import { putCommand, resultOf, stateOf } from "./allocator/support.ts";
import { takeStep, withBadge } from "./badges/life-support.ts";
import { deltaOf, listen, liveOf, outcomeOf, ringLive, withHeldDoor } from "./live/support.ts";
import type { TestApplication } from "./support/application.ts";
import { boundHome, testHome } from "./support/home.ts";
import { callServer } from "./support/http.ts";
import { log } from "./support/log.ts";
import { Outbox } from "./support/outbox.ts";
import { consume, DONE } from "./support/queue.ts";

/**
 * A deployment runs two releases at once. Calls of allocators have a version (test/allocator/releases.test.ts). What else a Worker
 * and objects send each other has none: if the other release does not know it, it fails, and is done later.
 */

const linesAbout = (event: string) => log.lines().filter((line) => line.event === event);

/** Objects of a release that does not have this method. @returns brings the method back, as the other release's deployment does */
function without(prototype: object, method: string): () => void {
  const found = Object.getOwnPropertyDescriptor(prototype, method);
  if (!found) throw new Error(`no method ${method}`);
  Reflect.deleteProperty(prototype, method);
  const bringBack = () => void Object.defineProperty(prototype, method, found);
  onTestFinished(bringBack);
  return bringBack;
}

const homeScheduler = () => env.HOME_SCHEDULER.getByName(String(testHome()));

describe("objects of a release that does not know a method of the Worker (contract section 21)", () => {
  it("objects of an earlier release carry out the script's commands after the deployment, when they cannot be woken during it", async () => {
    const { application, number } = await withBadge();
    const command = await putCommand(application, { kind: "suspend", number: Number(number) });
    const bringBack = without(Allocator.prototype, "wake");
    await homeScheduler().tick(testHome());
    expect(linesAbout("allocator-not-woken")).toContainEqual(
      expect.objectContaining({ level: "warn", application: application.id }),
    );
    expect(await consume({ wake: application.id })).toEqual(DONE);
    expect(linesAbout("recipient-not-woken")).toMatchObject([{ level: "warn", recipient: application.id }]);
    expect(await resultOf(command)).toBeNull();
    bringBack();
    await homeScheduler().tick(testHome());
    expect(await resultOf(command)).toMatchObject({ kind: "badge" });
    expect(await stateOf(application, number)).toBe("suspended");
  });

  it("objects of an earlier release do not tick during the deployment, and tick a minute later", async () => {
    const tickedAt = () => boundHome().d1.prepare("SELECT ticked_at FROM heartbeat WHERE id = 1").first("ticked_at");
    const cron = () => worker.scheduled({ scheduledTime: 60_000, cron: "* * * * *", noRetry() {} }, env);
    await cron();
    const before = await tickedAt();
    const bringBack = without(HomeScheduler.prototype, "tick");
    await cron();
    expect(linesAbout("tick-failed")).toHaveLength(2);
    expect(await tickedAt()).toBe(before);
    bringBack();
    await cron();
    expect(await tickedAt()).toBeGreaterThan(Number(before));
  });
});

/** The object of connected doors sends this to all of them. */
const sendToDoors = (application: TestApplication, message: object): Promise<void> =>
  runInDurableObject(liveOf(application), (_, state) => {
    for (const socket of state.getWebSockets()) socket.send(JSON.stringify(message));
  });

describe("an object of connected doors of another release (contract section 26)", () => {
  it("an object of connected doors that cannot be woken delays no change of status, and doors have it within half a minute", async () => {
    const { application, number, idx, have, held } = await withHeldDoor();
    without(Live.prototype, "wake");
    expect((await takeStep(application, number, "suspend")).status).toBe(200);
    await expect.poll(() => linesAbout("live-not-woken")).toMatchObject([{ level: "warn" }]);
    await ringLive(application);
    expect(deltaOf(await held)).toMatchObject({ since: have, entries: [[0, idx, 2]] });
  });

  it("an object of connected doors that takes no calls makes the door's call 503, and the door calls again", async () => {
    const { application, number, have, door, held } = await withHeldDoor();
    const bringBack = without(Live.prototype, "fetch");
    expect(outcomeOf(await listen(door, `have=${have}`))).toBe("503 UNAVAILABLE");
    bringBack();
    await takeStep(application, number, "suspend");
    expect(deltaOf(await listen(door, `have=${have}`))).toMatchObject({ since: have });
    await held;
  });

  it("an object of connected doors that sends what the Worker does not know makes the door's call 503, and the door calls again", async () => {
    const { application, number, have, door, held } = await withHeldDoor();
    await sendToDoors(application, { later: true });
    expect(outcomeOf(await held)).toBe("503 UNAVAILABLE");
    await takeStep(application, number, "suspend");
    expect(deltaOf(await listen(door, `have=${have}`))).toMatchObject({ since: have });
  });

  it("an object of connected doors that does not know which doors it has seen makes GET /v1/doors 503", async () => {
    const { application, held } = await withHeldDoor();
    const bringBack = without(Live.prototype, "seen");
    const doors = () => callServer(application, "GET", "/v1/doors");
    expect(await doors()).toMatchObject({ status: 503, body: { error: "UNAVAILABLE" } });
    bringBack();
    expect((await doors()).status).toBe(200);
    await sendToDoors(application, { refused: "RATE_LIMITED" });
    await held;
  });
});

it("a queue message of another release is dropped, and the tick finds what it was about (contract section 8)", async () => {
  const outbox = await Outbox.open({ webhookUrl: "https://hooks.example/badges" });
  const event = await outbox.issue();
  expect(await consume({ version: 2, application: outbox.application.id, events: [event] })).toEqual(DONE);
  expect(linesAbout("malformed-message")).toMatchObject([{ level: "error" }]);
  outbox.now += 60_000;
  expect(await outbox.sweep()).toEqual([event]);
});
