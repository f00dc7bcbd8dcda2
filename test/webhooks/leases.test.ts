import { describe, expect, it, vi } from "vitest";
import { Database } from "../../src/worker/storage/database.ts";
import { leaseEvents } from "../../src/worker/storage/webhook-events.ts";
import { replayEvent } from "../../src/worker/storage/webhook-list.ts";
import { type AroundTrip, aroundD1 } from "../support/d1.ts";
import { isAbout, LOST } from "../support/faults.ts";
import { homeDatabase } from "../support/home.ts";
import type { Outbox } from "../support/outbox.ts";
import { answer, hangs } from "../support/receivers.ts";
import { until } from "../support/until.ts";
import { useOutboxes } from "./support.ts";

const { open } = useOutboxes();

/** An event with a due time, as after a failed attempt. @returns its ID */
async function dueEvent(outbox: Outbox): Promise<string> {
  const event = await outbox.issue();
  await outbox.change(event, { dueAt: outbox.now });
  return event;
}

/** D1 whose response to a lease is lost so often, after the lease was committed. */
function losingLeases(times: number, afterwards: () => Promise<unknown> = async () => {}): Database {
  let losses = 0;
  const around: AroundTrip = async (statements, send) => {
    const result = await send();
    if (!isAbout(statements, "RETURNING") || losses >= times) return result;
    losses++;
    await afterwards();
    throw LOST;
  };
  return new Database(aroundD1(homeDatabase(), around));
}

describe("a lease whose response is lost (contract section 8: found and sent within about a minute)", () => {
  it("a lease whose response is lost twice recognizes its own lease when it is repeated, and the events are sent at once", async () => {
    const { endpoint, outbox } = await open();
    const events = [await dueEvent(outbox), await dueEvent(outbox)];
    outbox.context = { ...outbox.context, db: losingLeases(2) };
    await outbox.deliver(...events);
    expect(endpoint.received.map(({ headers }) => headers.get("webhook-id"))).toEqual(events);
    expect(await outbox.events()).toMatchObject([1, 2].map(() => ({ state: "delivered", attempts: 1 })));
  });

  it("a repeated lease takes no event that another consumer leased in the same millisecond", async () => {
    const { outbox } = await open();
    const ids = [{ applicationId: outbox.application.id, eventId: await dueEvent(outbox) }];
    const lease = (db: Database, random: number) => leaseEvents(db, ids, { now: outbox.now, random });
    const rival = () => lease(outbox.context.db, 0.5);
    // The rival comes between the lost lease and its repetition, and finds nothing due.
    const rivals: Awaited<ReturnType<typeof lease>>[] = [];
    const lost = await lease(
      losingLeases(1, async () => rivals.push(await rival())),
      0.25,
    );
    expect(lost.events).toHaveLength(1);
    expect(rivals.map(({ events }) => events)).toEqual([[]]);
    // One that comes first with its own response lost leaves the other with nothing, however often that repeats.
    outbox.now += 70_000;
    expect((await rival()).events).toHaveLength(1);
    expect((await lease(losingLeases(2), 0.75)).events).toEqual([]);
  });
});

describe("an event that a sender has leased (contract section 8)", () => {
  async function leasedEvent() {
    const { outbox } = await open();
    const eventId = await dueEvent(outbox);
    const ids = [{ applicationId: outbox.application.id, eventId }];
    const lease = () => leaseEvents(outbox.context.db, ids, { now: outbox.now, random: 0 });
    expect((await lease()).events).toHaveLength(1);
    return { outbox, eventId, lease };
  }

  it("a leased event of a held endpoint is held only after its lease has ended", async () => {
    const { outbox, eventId, lease } = await leasedEvent();
    await outbox.setUrl(null);
    outbox.now += 59_999;
    expect((await lease()).events).toEqual([]);
    expect(await outbox.event(eventId)).toMatchObject({ state: "pending" });
    outbox.now += 1;
    expect((await lease()).events).toEqual([]);
    expect(await outbox.event(eventId)).toMatchObject({ state: "held" });
  });

  it("a replayed event is sent at once, without waiting for the running attempt (contract section 19)", async () => {
    const { outbox, eventId, lease } = await leasedEvent();
    expect((await lease()).events).toEqual([]);
    expect(
      await replayEvent(outbox.context.db, outbox.application.id, eventId, { actor: { kind: "server" } }, outbox.now),
    ).toBe("pending");
    expect((await lease()).events).toMatchObject([{ eventId, attempts: 0 }]);
  });
});

describe("a first attempt (contract section 8: after a timeout the delay is at least 60 s)", () => {
  it.each([3000, 6000, 15_000])(
    "a first attempt that begins %i ms after the badge and hangs is the only one until it has ended, and it counts",
    async (later) => {
      const { endpoint, outbox } = await open(hangs);
      const giveUp = new AbortController();
      vi.spyOn(AbortSignal, "timeout").mockReturnValue(giveUp.signal);
      const event = await outbox.issue();
      outbox.now += later;
      await outbox.consume(event);
      await until(() => expect(endpoint.received).toHaveLength(1));
      outbox.now += 14_900;
      expect(await outbox.sweep()).toEqual([]);
      outbox.now += 100;
      giveUp.abort();
      await outbox.settle();
      expect(await outbox.event(event)).toMatchObject({ attempts: 1, lastOutcome: "timeout" });
      expect(await outbox.dueTime(event)).toBeGreaterThanOrEqual(outbox.now + 60_000);
    },
  );

  it("a first attempt counts although a tick has given its event a due time while the failure was recorded", async () => {
    const { outbox } = await open(() => answer(500));
    const event = await outbox.issue();
    const around: AroundTrip = async (statements, send) => {
      if (isAbout(statements, "made.value")) {
        outbox.now += 21_000;
        await outbox.sweep();
      }
      return send();
    };
    const { context } = outbox;
    outbox.context = { ...context, db: new Database(aroundD1(homeDatabase(), around)) };
    await outbox.deliver(event);
    expect(await outbox.event(event)).toMatchObject({ attempts: 1, lastStatus: 500 });
  });
});
