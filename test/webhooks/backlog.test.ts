import { describe, expect, it } from "vitest";
import { findDueEvents } from "../../src/worker/storage/webhook-backlog.ts";
import { useQuietLog } from "../invitations/support/log.ts";
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
});
