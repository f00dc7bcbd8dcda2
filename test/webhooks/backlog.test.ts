import { describe, expect, it } from "vitest";
import { newApplicationId } from "../../src/shared/identifiers.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { findDueEvents } from "../../src/worker/storage/webhook-backlog.ts";
import { enqueueDueEvents } from "../../src/worker/webhooks/backlog.ts";
import { DeliveryPace } from "../../src/worker/webhooks/delivery-message.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { aroundD1 } from "../support/d1.ts";
import { homeDatabase } from "../support/home.ts";
import type { Outbox } from "../support/outbox.ts";
import { useOutboxes } from "./support.ts";

const { open } = useOutboxes();

useQuietLog();

describe("due events of many applications (contract section 8)", () => {
  it("a sweep enqueues events of every application, even if one has a large backlog", async () => {
    const [{ outbox: dead }, { outbox: other }] = [await open(), await open()];
    for (let count = 0; count < 8; count++) {
      dead.now += 1;
      await dead.issue();
    }
    other.now = dead.now + 1000;
    const waiting = await other.issue();
    const now = dead.now + 60_000;
    dead.now = now;
    await dead.sweep();
    const found = await findDueEvents(dead.context.db, { now, perApplication: 5, limit: 100 });
    const of = ({ application: { id } }: Outbox) => found.filter(({ applicationId }) => applicationId === id);
    expect(of(dead).map(({ eventId }) => eventId)).toEqual((await dead.events()).slice(0, 5).map(({ id }) => id));
    expect(of(other).map(({ eventId }) => eventId)).toEqual([waiting]);
    const limited = await findDueEvents(dead.context.db, {
      now,
      perApplication: 5,
      limit: found.length - 4,
    });
    expect(limited.map(({ eventId }) => eventId)).toContain(waiting);
  });

  it("a sweep asks D1 for due events once, unless an application may have more than 25", async () => {
    const { outbox } = await open();
    let trips = 0;
    const d1 = aroundD1(homeDatabase(), (_, send) => {
      trips++;
      return send();
    });
    await enqueueDueEvents({ ...outbox.context, db: new Database(d1) });
    expect(trips).toBe(1);
  });

  it("events that are more than two minutes of deliveries ahead are left to the tick", () => {
    const applicationId = newApplicationId(1);
    const ids = Array.from({ length: 7000 }, (_, place) => ({ applicationId, eventId: `evt_${place}` }));
    const messages = new DeliveryPace().messagesFor(ids, 0);
    expect(messages).toHaveLength(121 * 50);
    expect(messages.at(-1)).toMatchObject({ delaySeconds: 120, body: { afterMilliseconds: 980 } });
  });
});
