import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { DoorControl } from "../../src/examples/door-control.ts";
import { until } from "../support/until.ts";
import { ACTIVE, APPLICATION_ID, DoorService, REVOKED, SUSPENDED } from "./support/door-service.ts";

/** Milliseconds that doors wait before they call again. They do not wait here, but for what is under way. */
const waits: number[] = [];

vi.mock("node:timers/promises", () => ({
  setTimeout(milliseconds: number) {
    waits.push(milliseconds);
    return new Promise((resolve) => setTimeout(resolve, 1));
  },
}));

const writes = { running: 0, most: 0, held: Promise.resolve() };

vi.mock("../../src/examples/door-file.ts", async (importOriginal) => {
  const original = await importOriginal<typeof import("../../src/examples/door-file.ts")>();
  return {
    ...original,
    async writeDoorFile(...given: Parameters<typeof original.writeDoorFile>) {
      writes.most = Math.max(writes.most, ++writes.running);
      await writes.held;
      await original.writeDoorFile(...given).finally(() => writes.running--);
    },
  };
});

// Another file of this Node may have loaded it with the real timers.
vi.resetModules();
const { DoorControl: Door } = await import("../../src/examples/door-control.ts");

const root = mkdtempSync(join(tmpdir(), "door-live-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const NOW = 1_800_000_000_000;
const doors: DoorControl[] = [];
const logged: string[] = [];
let folder = "";
let service: DoorService;

beforeEach(() => {
  folder = mkdtempSync(join(root, "test-"));
  service = new DoorService(() => NOW);
  service.change = 10;
  logged.length = 0;
  waits.length = 0;
  Object.assign(writes, { running: 0, most: 0, held: Promise.resolve() });
});

afterEach(() => {
  for (const door of doors.splice(0)) door.stop();
});

/** A response of the service that does not come. */
const held = () => new Promise<Response>(() => {});

async function openDoor(file = join(folder, "door.json")): Promise<DoorControl> {
  const door = await Door.open({
    ...{ serviceUrl: service.url, applicationId: APPLICATION_ID, secret: "secret", file },
    log: (line) => logged.push(line),
    fetch: service.fetch,
    now: () => NOW,
  });
  doors.push(door);
  return door;
}

/** A door that has its list, and listens. */
async function connect(file?: string): Promise<DoorControl> {
  const door = await openDoor(file);
  await door.refresh();
  void door.listen();
  return door;
}

async function outcome(door: DoorControl, index: number): Promise<string> {
  const result = await door.check(service.badgeSignature(index));
  return result.ok ? "open" : result.reason;
}

const liveCalls = () => service.requested.filter((path) => path.startsWith("/v1/live"));

describe("a connected door (contract section 26)", () => {
  it("a door applies each delta, keeps it although a cached list is older, and decides by it after a restart without the network", async () => {
    service.live = (have) => {
      if (have === 10) return new Response(service.delta(10, 12, { 3: SUSPENDED, 5: REVOKED }));
      return have === 12 ? new Response(service.delta(12, 13, { 3: ACTIVE })) : held();
    };
    const door = await connect();
    await until(() => expect(liveCalls().at(-1)).toBe("/v1/live?have=13"));
    await door.refresh();
    const outcomes = [await outcome(door, 3), await outcome(door, 4), await outcome(door, 5)];
    expect(outcomes).toEqual(["open", "open", "revoked"]);
    service.interfere = () => {
      throw new Error("no network");
    };
    const restarted = await openDoor();
    expect([await outcome(restarted, 3), await outcome(restarted, 5)]).toEqual(["open", "revoked"]);
    expect(waits).toEqual([]);
  });

  it("a door writes its file once at a time, though a delta comes while it refreshes", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    service.live = (have) => (have === 10 ? new Response(service.delta(10, 11, { 3: SUSPENDED })) : held());
    const door = await openDoor();
    await door.refresh();
    writes.held = promise;
    void door.listen();
    await until(() => expect(writes.running).toBe(1));
    const refreshed = door.refresh();
    // Long enough for the refresh to write too, if it does not wait.
    await new Promise((done) => setTimeout(done, 100));
    resolve();
    await refreshed;
    await until(() => expect(liveCalls().at(-1)).toBe("/v1/live?have=11"));
    expect(writes.most).toBe(1);
    expect(await outcome(await openDoor(), 3)).toBe("suspended");
  });

  it("a door says once that it needs status lists, and connects when the application has them", async () => {
    service.live = held;
    service.hasStatusLists = false;
    const door = await connect();
    await until(() => expect(waits.length).toBeGreaterThan(3));
    const line = "not connected: there are no status lists; does the application publish them (--status-list)?";
    expect(logged).toEqual([line]);
    service.hasStatusLists = true;
    await door.refresh();
    await until(() => expect(liveCalls()).toEqual(["/v1/live?have=10"]));
  });

  it("a door downloads the lists again after a republication, or when it lacks more than 2,000 changes", async () => {
    service.statuses.set(7, REVOKED);
    service.live = (have) => (have === 10 ? new Response(service.delta(20, 20, {})) : held());
    const door = await openDoor();
    await door.refresh();
    service.statuses.set(8, REVOKED);
    service.change = 20;
    void door.listen();
    await until(() => expect(liveCalls().at(-1)).toBe("/v1/live?have=20"));
    expect([await outcome(door, 7), await outcome(door, 8)]).toEqual(["revoked", "revoked"]);
  });

  it("a door takes the lists of a restored database, although it has later changes (section 21)", async () => {
    service.live = (have) => {
      if (liveCalls().length === 1) return new Response(service.delta(10, 11, { 3: SUSPENDED }));
      return have === 11 ? new Response(service.delta(10, 10, {})) : held();
    };
    const door = await connect();
    await until(() => expect(liveCalls()).toEqual(["10", "11", "10"].map((have) => `/v1/live?have=${have}`)));
    expect(logged).toContain("changes up to 10: the lists are needed again");
    expect(await outcome(door, 3)).toBe("open");
  });

  it("a door waits while a cache still has the lists of before a restore (section 21)", async () => {
    service.change = 11;
    service.live = () => (liveCalls().length <= 3 ? new Response(service.delta(10, 10, {})) : held());
    await connect();
    await until(() => expect(liveCalls()).toEqual(Array(4).fill("/v1/live?have=11")));
    expect(waits.filter((milliseconds) => milliseconds >= 5000 && milliseconds <= 10_000)).toHaveLength(3);
  });

  it.each([
    ["forged", () => new DoorService(() => NOW).delta(10, 11, { 3: SUSPENDED }), "bad-signature"],
    [
      "of another application",
      () => service.delta(10, 11, { 3: SUSPENDED }, { sub: "https://x.example" }),
      "wrong-uri",
    ],
  ])("a door does not apply a delta that is %s, and goes on with its lists", async (_, make, reason) => {
    service.live = (have) => (liveCalls().length === 1 && have === 10 ? new Response(make()) : held());
    const door = await connect();
    await until(() => expect(liveCalls()).toHaveLength(2));
    expect(logged).toContain(`not connected: a delta is refused (${reason}); the lists are used`);
    expect([await outcome(door, 3), liveCalls().at(-1)]).toEqual(["open", "/v1/live?have=10"]);
    service.statuses.set(3, SUSPENDED);
    service.change = 11;
    await door.refresh();
    expect(await outcome(door, 3)).toBe("suspended");
  });

  it("an old delta that is replayed does not take a door back", async () => {
    service.statuses.set(3, SUSPENDED);
    service.live = () => (liveCalls().length === 1 ? new Response(service.delta(8, 9, { 3: ACTIVE })) : held());
    const door = await connect();
    await until(() => expect(liveCalls()).toHaveLength(2));
    expect(await outcome(door, 3)).toBe("suspended");
  });

  it.each([
    [401, "the service does not know this secret"],
    [404, "the application has no status lists"],
    [429, "another door has called with this secret"],
  ])("a door waits before its next call after %i, and goes on with its lists", async (status, reason) => {
    service.live = () => (liveCalls().length === 1 ? Response.json({}, { status }) : held());
    const door = await connect();
    await until(() => expect(liveCalls()).toHaveLength(2));
    expect(logged).toContain(`not connected: ${reason}; the lists are used`);
    expect(waits).toEqual([expect.closeTo(45_000, -4.5)]);
    expect(await outcome(door, 3)).toBe("open");
  });
});

describe("doors whose calls all end at once, as in a deployment or a restart (contract section 26)", () => {
  it("300 doors call again with jitter, all equally often", async () => {
    const COUNT = 300;
    const { promise: restart, resolve } = Promise.withResolvers<void>();
    let calls = 0;
    service.live = async () => {
      if (++calls > COUNT) return held();
      await restart;
      throw new TypeError("fetch failed");
    };
    // Nothing can be written there.
    for (let place = 0; place < COUNT; place++) await connect("/dev/null/door.json");
    await until(() => expect(calls).toBe(COUNT));
    resolve();
    await until(() => expect(calls).toBe(2 * COUNT));
    expect(waits).toHaveLength(COUNT);
    expect([Math.min(...waits) >= 1000, Math.max(...waits) <= 2000]).toEqual([true, true]);
    // Of 300, each tenth of that second has about 30.
    const parts = Map.groupBy(waits, (wait) => Math.floor((wait - 1000) / 100));
    expect(Math.max(...[...parts.values()].map(({ length }) => length))).toBeLessThan(75);
  });
});
