import { describe, expect, it, vi } from "vitest";
import { newEventId } from "../../src/shared/identifiers.ts";
import { isoTime } from "../../src/shared/time.ts";
import { Unavailable } from "../../src/worker/platform.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { giveDueTimes, readUntriedFrom } from "../../src/worker/storage/webhook-backlog.ts";
import { findUntriedEvents } from "../../src/worker/webhooks/backlog.ts";
import { pageEvents } from "../../src/worker/webhooks/list.ts";
import { ENTRY } from "../allocator/support.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { bindObject, ring } from "../support/allocator.ts";
import { type AroundTrip, aroundD1 } from "../support/d1.ts";
import { isAbout, LOST } from "../support/faults.ts";
import { bindDatabase, homeDatabase, runSql } from "../support/home.ts";
import { type Outbox, setUntriedFrom } from "../support/outbox.ts";
import { useOutboxes } from "./support.ts";

const { open } = useOutboxes();
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

useQuietLog();

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

  it("events whose messages were lost are found in chunks, however long the scheduler was down", async () => {
    const { outbox } = await open();
    const start = outbox.now;
    await tick(outbox, 1);
    const ages = [5 * MINUTE, HOUR, 3 * HOUR, 23 * HOUR, 40 * DAY];
    const events = await insertEvents(
      outbox,
      ages.map((age) => start + age),
    );
    outbox.now = start + 41 * DAY;
    expect([...new Set(await tick(outbox, 2))]).toEqual(events);
  });

  it("an event whose message was lost is found among more than a chunk of events", async () => {
    const { outbox } = await open();
    const events = await insertEvents(
      outbox,
      Array.from({ length: 1201 }, (_, index) => outbox.now + index),
    );
    outbox.now += HOUR;
    expect(new Set(await tick(outbox, 2))).toEqual(new Set(events));
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

describe("GET /v1/events?state=pending (contract section 19)", () => {
  it("untried events are listed among those that wait for a retry, newest first, as due at their creation", async () => {
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
