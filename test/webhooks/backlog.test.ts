import { describe, expect, it, vi } from "vitest";
import { newApplicationId, newEventId } from "../../src/shared/identifiers.ts";
import { isoTime } from "../../src/shared/time.ts";
import { Unavailable } from "../../src/worker/platform.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { findDueEvents, giveDueTimes, readUntriedFrom } from "../../src/worker/storage/webhook-backlog.ts";
import { enqueueDueEvents, findUntriedEvents } from "../../src/worker/webhooks/backlog.ts";
import { DeliveryPace } from "../../src/worker/webhooks/delivery-message.ts";
import { pageEvents } from "../../src/worker/webhooks/list.ts";
import { ENTRY } from "../allocator/support.ts";
import { bindObject, ring } from "../support/allocator.ts";
import { DAY, HOUR, MINUTE } from "../support/clock.ts";
import { type AroundTrip, aroundD1, countedD1 } from "../support/d1.ts";
import { isAbout, LOST } from "../support/faults.ts";
import { bindDatabase, homeDatabase, runSql } from "../support/home.ts";
import { type Outbox, setUntriedFrom } from "../support/outbox.ts";
import { useOutboxes } from "./support.ts";

const { open } = useOutboxes();

/** Events as badges write them, one made at each of these moments. @returns their IDs */
async function insertEvents({ application: { id } }: Outbox, moments: readonly number[], state = "pending") {
  const rows = moments.map((createdAt) => ({ id: newEventId(createdAt), createdAt }));
  await runSql(
    `INSERT INTO webhook_event (application_id, id, event, payload, state, created_at)
      SELECT ?1, value ->> 'id', 'badge:created', '{"data":{}}', ?3, value ->> 'createdAt' FROM json_each(?2)`,
    id,
    JSON.stringify(rows),
    state,
  );
  return rows.map((row) => row.id);
}

/** Ticks, so many milliseconds apart. @returns the events that they enqueue */
async function tick(outbox: Outbox, count: number, apart = MINUTE): Promise<string[]> {
  const enqueued: string[] = [];
  for (let made = 0; made < count; made++) {
    enqueued.push(...(await outbox.sweep()));
    outbox.now += apart;
  }
  return enqueued;
}

describe("an event whose message was lost (contract section 8: found and sent within about a minute)", () => {
  it("an event whose message was lost is enqueued by the first tick that finds it older than 20 s, and again until it is leased", async () => {
    const { outbox } = await open();
    const event = await outbox.issue();
    outbox.now += 20_000;
    expect(await outbox.sweep(), "its first attempt may be under way").toEqual([]);
    outbox.now += 1;
    expect(await outbox.sweep()).toEqual([event]);
    outbox.now += MINUTE;
    expect(await outbox.sweep()).toEqual([event]);
    await outbox.deliver(event);
    outbox.now += MINUTE;
    expect(await outbox.sweep()).toEqual([]);
    expect(await outbox.event(event)).toMatchObject({ state: "delivered" });
  });

  it.each<[string, number, number[]]>([
    ["however long the scheduler was down", 41 * DAY, [5 * MINUTE, HOUR, 3 * HOUR, 23 * HOUR, 40 * DAY]],
    ["among more than a chunk of events", HOUR, Array.from({ length: 1201 }, (_, place) => place)],
  ])("events whose messages were lost are found %s", async (_, later, ages) => {
    const { outbox } = await open();
    const start = outbox.now;
    await tick(outbox, 1);
    const moments = ages.map((age) => start + age);
    const events = await insertEvents(outbox, moments);
    outbox.now = start + later;
    expect([...new Set(await tick(outbox, 2))].toSorted()).toEqual(events);
  });

  it("an event that D1 gets up to nine minutes late is found, after many ticks", async () => {
    const { outbox } = await open();
    await tick(outbox, 3, 10 * MINUTE);
    const [event] = await insertEvents(outbox, [outbox.now - 9 * MINUTE]);
    expect(await outbox.sweep()).toEqual([event]);
  });

  it("an event that D1 gets an hour late, because it failed until then, is found, after many ticks", async () => {
    const { outbox } = await open();
    const { application } = outbox;
    const first = await outbox.issue();
    await outbox.deliver(first);
    const around: AroundTrip = async (statements, send) => {
      if (!isAbout(statements, ENTRY)) return send();
      // The caller has given up, too.
      outbox.now += MINUTE;
      throw LOST;
    };
    const bind = (d1: D1Database) => bindObject(application, () => ({ WEBHOOKS: outbox.queue, ...bindDatabase(d1) }));
    await bind(aroundD1(homeDatabase(), around));
    await expect(outbox.issue()).rejects.toThrow(Unavailable);
    await tick(outbox, 6, 10 * MINUTE);
    await bind(homeDatabase());
    const clock = vi.spyOn(Date, "now").mockImplementation(() => outbox.now);
    await ring(application).finally(() => clock.mockRestore());
    const late = (await outbox.events()).filter(({ id }) => id !== first);
    expect(late).toMatchObject([{ state: "pending", attempts: 0 }]);
    outbox.now += MINUTE;
    expect(await outbox.sweep()).toEqual(late.map(({ id }) => id));
  });

  it("an event is found in a D1 that was restored to a time when it was new", async () => {
    const { outbox } = await open();
    await tick(outbox, 1);
    const restoredTo = await readUntriedFrom(outbox.context.db);
    const event = await outbox.issue();
    await outbox.deliver(event);
    outbox.now += 10 * DAY;
    await tick(outbox, 2);
    await outbox.change(event, { state: "pending", attempts: 0, deliveredAt: null });
    expect(await outbox.sweep(), "without the rest of D1").toEqual([]);
    await runSql("UPDATE heartbeat SET untried_from = ?", restoredTo);
    expect(await outbox.sweep()).toEqual([event]);
  });

  it("an event whose message was lost is found although the clock was ahead for a tick", async () => {
    const { outbox } = await open();
    outbox.now += 365 * DAY;
    await outbox.sweep();
    outbox.now -= 365 * DAY;
    const event = await outbox.issue();
    outbox.now += MINUTE;
    expect(await outbox.sweep()).toEqual([event]);
  });
});

it("untried events are listed among those that wait for a retry, newest first, as due at their creation (contract section 19)", async () => {
  const { outbox } = await open();
  const [oldest, failed, newest] = [await outbox.issue(), await outbox.issue(), await outbox.issue()];
  const dueAt = outbox.now + HOUR;
  await outbox.change(failed, { attempts: 1, dueAt });
  await insertEvents(outbox, [outbox.now], "delivered");
  const page = { state: "pending", after: null, perPage: 2 } as const;
  const first = await pageEvents(outbox.context, outbox.application.id, page);
  const times = (await outbox.events()).map(({ createdAt }) => isoTime(createdAt));
  expect(first.events.map(({ id, nextAttemptAt }) => [id, nextAttemptAt])).toEqual([
    [newest, times[2]],
    [failed, isoTime(dueAt)],
  ]);
  const { events, next } = await pageEvents(outbox.context, outbox.application.id, { ...page, after: first.next });
  expect(events.map(({ id, nextAttemptAt }) => [id, nextAttemptAt])).toEqual([[oldest, times[0]]]);
  expect(next).toBeNull();
});

describe("due events of many applications (contract section 8)", () => {
  it("a sweep enqueues events of every application, even if one has a large backlog", async () => {
    const [{ outbox: dead }, { outbox: other }] = [await open(), await open()];
    for (let count = 0; count < 8; count++) await dead.issue();
    other.now = dead.now + 1000;
    const waiting = await other.issue();
    const now = dead.now + MINUTE;
    dead.now = now;
    await dead.sweep();
    const found = await findDueEvents(dead.context.db, { now, perApplication: 5, limit: 100 });
    const of = ({ application: { id } }: Outbox) =>
      found.filter(({ applicationId }) => applicationId === id).map(({ eventId }) => eventId);
    expect(of(dead)).toEqual((await dead.events()).slice(0, 5).map(({ id }) => id));
    expect(of(other)).toEqual([waiting]);
    const limited = await findDueEvents(dead.context.db, { now, perApplication: 5, limit: found.length - 4 });
    expect(limited.map(({ eventId }) => eventId)).toContain(waiting);
  });

  it("a sweep asks D1 for due events once, unless an application may have more than 25", async () => {
    const { outbox } = await open();
    await runSql("DELETE FROM webhook_event");
    const counted = countedD1(homeDatabase());
    await enqueueDueEvents({ ...outbox.context, db: new Database(counted.d1) });
    expect(counted.trips).toBe(1);
  });

  it("events that are more than two minutes of deliveries ahead are left to the tick", () => {
    const applicationId = newApplicationId(1);
    const ids = Array.from({ length: 7000 }, (_, place) => ({ applicationId, eventId: `evt_${place}` }));
    const messages = new DeliveryPace().messagesFor(ids, 0);
    expect(messages).toHaveLength(121 * 50);
    expect(messages.at(-1)).toMatchObject({ delaySeconds: 120, body: { afterMilliseconds: 980 } });
  });
});

describe("how far ticks have looked for events that nobody has tried", () => {
  it("a tick that read the checkpoint before D1 was restored does not move it", async () => {
    const { outbox } = await open();
    const { db } = outbox.context;
    const before = await readUntriedFrom(db);
    await setUntriedFrom(outbox.now - DAY);
    const restored = await readUntriedFrom(db);
    await giveDueTimes(db, [0, outbox.now], { before, moment: outbox.now }, 500);
    expect(await readUntriedFrom(db)).toBe(restored);
  });

  it("an event is found although D1 was restored in the middle of a tick, to where the tick had begun (section 21)", async () => {
    const { outbox } = await open();
    const event = await outbox.issue();
    outbox.now += HOUR;
    const before = await readUntriedFrom(outbox.context.db);
    const restore = async () => {
      await outbox.change(event, { state: "pending", dueAt: null });
      await runSql("UPDATE heartbeat SET untried_from = ?", before);
    };
    const around: AroundTrip = async (statements, send) => {
      const result = await send();
      if (statements.some(({ sql }) => /^UPDATE "?webhook_event/i.test(sql))) await restore();
      return result;
    };
    await findUntriedEvents({ ...outbox.context, db: new Database(aroundD1(homeDatabase(), around)) });
    expect(await outbox.sweep()).toEqual([event]);
  });

  it("an event is found although D1 was restored to a time that has it, after a tick had seen none (section 21)", async () => {
    const { outbox } = await open();
    const made = outbox.now;
    outbox.now += 5 * HOUR;
    const restored: string[] = [];
    const around: AroundTrip = async (statements, send) => {
      const result = await send();
      if (statements.some(({ sql }) => sql.includes("min(next)"))) {
        restored.push(...(await insertEvents(outbox, [made])));
      }
      return result;
    };
    await findUntriedEvents({ ...outbox.context, db: new Database(aroundD1(homeDatabase(), around)) });
    expect(restored).toHaveLength(1);
    expect(await outbox.sweep()).toEqual(restored);
  });
});
