import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { APPLICATION_CACHE_SECONDS } from "../../src/shared/limits/cache-limits.ts";
import { takeStep } from "../badges/life-support.ts";
import { LIVE_COSTS } from "../long-runs/scale/doors.ts";
import { billOf } from "../support/bill.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { type AroundTrip, aroundD1 } from "../support/d1.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { serverHeaders } from "../support/http.ts";
import { addDoor, liveOf, ringLive, untilHeld, withBadge, withLists } from "./support.ts";

const DOORS = 5;

/** An application whose doors listen, and a meter on what the Worker and the object of its doors read and write. */
async function open() {
  const { application, number, have } = await withBadge();
  const cost = { d1RoundTrips: 0, d1RowsRead: 0, objectRowsWritten: 0 };
  const around: AroundTrip = async (statements, send) => {
    const result = await send();
    cost.d1RoundTrips++;
    cost.d1RowsRead += (await billOf(statements, result)).rowsRead;
    return result;
  };
  const database = bindDatabase(aroundD1(homeDatabase(), around));
  const { exec, admissions, alarms } = await runInDurableObject(liveOf(application), (live, state) => {
    Object.defineProperty(live, "env", { value: { ...env, ...database } });
    const [admissions, alarms] = [vi.spyOn(state, "waitUntil"), vi.spyOn(live, "alarm")];
    return { exec: vi.spyOn(state.storage.sql, "exec"), admissions, alarms };
  });
  /** Until the object has read everything that it began to read. */
  const settle = () =>
    runInDurableObject(liveOf(application), () =>
      Promise.all([...admissions.mock.calls.flat(), ...alarms.mock.results.map(({ value }) => value)]),
    );
  const listen = (headers: Record<string, string>, change: number) =>
    callWith({ ...database, CLIENT_IP_LIMIT: UNLIMITED }, "GET", `/v1/live?have=${change}`, { headers });
  const doors: Record<string, string>[] = [];
  for (let door = 0; door < DOORS; door++) doors.push(await addDoor(application, `Door ${door}`));
  return {
    ...{ application, number, have, doors, listen },
    async measure(act: () => Promise<unknown>): Promise<typeof cost> {
      await settle();
      Object.assign(cost, { d1RoundTrips: 0, d1RowsRead: 0, objectRowsWritten: 0 });
      exec.mockClear();
      await act();
      await settle();
      return runInDurableObject(liveOf(application), () => {
        const cursors = exec.mock.results.flatMap(({ type, value }) => (type === "return" ? [value] : []));
        return { ...cost, objectRowsWritten: cursors.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0) };
      });
    },
  };
}

const of = ({ d1RoundTrips, d1RowsRead, objectRowsWritten }: (typeof LIVE_COSTS)[keyof typeof LIVE_COSTS]) => ({
  ...{ d1RoundTrips, d1RowsRead, objectRowsWritten },
});

describe("what connected doors cost (contract section 26, docs/scale.md)", () => {
  it("the cost of a connected door is counted: its calls ask D1 nothing where the application is known, whatever number of doors calls", async () => {
    const { application, number, have, doors, listen, measure } = await open();
    const first = doors.map((door) => listen(door, have));
    await untilHeld(application, DOORS);
    const told = await measure(async () => {
      await takeStep(application, number, "suspend");
      await Promise.all(first);
    });
    const { d1RowsRead, ...alarm } = of(LIVE_COSTS.alarm);
    const expected = d1RowsRead + DOORS * LIVE_COSTS.alarmOfDoor.d1RowsRead;
    expect(told).toEqual({ ...alarm, d1RowsRead: expected, objectRowsWritten: 0 });
    const next = doors.map((door) => listen(door, have + 1));
    expect(await measure(() => untilHeld(application, DOORS))).toEqual({
      ...{ d1RoundTrips: 0, d1RowsRead: 0, objectRowsWritten: 0 },
    });
    const quiet = await measure(() => ringLive(application));
    expect(quiet).toEqual({ ...alarm, d1RowsRead: expected, objectRowsWritten: 0 });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + APPLICATION_CACHE_SECONDS * 1000 });
    const reloading = await measure(async () => {
      next.push(listen(doors[0] ?? {}, have + 1));
      await next[0];
      await untilHeld(application, DOORS);
    });
    expect(reloading).toEqual(of(LIVE_COSTS.call));
    vi.setSystemTime(Date.now() + 600_000);
    const seen = await measure(async () => {
      next.push(listen(doors[1] ?? {}, have + 1));
      await next[1];
      await untilHeld(application, DOORS);
    });
    expect(seen.objectRowsWritten).toBe(LIVE_COSTS.seen.objectRowsWritten);
    vi.useRealTimers();
    await takeStep(application, number, "resume");
    await ringLive(application);
    await Promise.all(next);
  });

  it("calls with a change number of their own ask D1 nothing: the next comparison for all doors serves them", async () => {
    const { application, have, doors, listen, measure } = await open();
    const earlier = doors.map((door) => listen(door, have));
    await untilHeld(application, DOORS);
    const made: ReturnType<typeof listen>[] = [];
    const asked = await measure(async () => {
      made.push(...doors.map((door) => listen(door, Number.MAX_SAFE_INTEGER)));
      await Promise.all(earlier);
      await untilHeld(application, DOORS);
    });
    expect(asked.d1RoundTrips).toBe(0);
    await ringLive(application);
    for (const { status } of await Promise.all(made)) expect(status).toBe(200);
  });
});

it("the doors of an application that has none are listed without its object", async () => {
  const LIVE = new Proxy(env.LIVE, { get: () => expect.fail("the object is asked") });
  const headers = serverHeaders(await withLists());
  expect(await callWith({ LIVE }, "GET", "/v1/doors", { headers })).toMatchObject({ status: 200, body: { doors: [] } });
});
