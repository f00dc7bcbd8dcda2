import { describe, expect, it } from "vitest";
import { eventIdPrefix } from "../../src/shared/identifiers.ts";
import { findDueEvents } from "../../src/worker/storage/webhook-backlog.ts";
import { enqueueDueEvents } from "../../src/worker/webhooks/backlog.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { runSql } from "../support/home.ts";
import { Outbox } from "../support/outbox.ts";
import { useReceivers } from "../support/receivers.ts";

const receiver = useReceivers();

useQuietLog();

/** The number n, from 1 to `?2`. */
const PLACES = "WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ?2)";

/** So many due events of each application whose ID begins so. */
const addDueEvents = (application: string, count: number) =>
  runSql(
    `${PLACES} INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
      SELECT application.id, ?1 || printf('%016d', n), 'badge:created', '{}', 'pending', 0, 0
      FROM application, place WHERE application.id LIKE ?3 || '%'`,
    eventIdPrefix(Date.now()),
    count,
    application,
  );

/** So many applications beside it, without objects. */
const addApplications = (count: number) =>
  runSql(
    `${PLACES} INSERT INTO application (id, name, first_number, last_number, sealed_root_key, sealing_version, created_at)
      SELECT printf('app_%020d', n), ?1, 7000000000 + n, 7000000000 + n, '', 1, 0 FROM place`,
    "other",
    count,
  );

describe("due events of many applications (contract section 8)", () => {
  it("a sweep enqueues events of every application, even if one has a large backlog", async () => {
    const [dead, other] = [
      await Outbox.open({ webhookUrl: receiver().url }),
      await Outbox.open({ webhookUrl: receiver().url }),
    ];
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

  it("a sweep enqueues 2,000 due events of one application", async () => {
    const outbox = await Outbox.open({ webhookUrl: receiver().url });
    await addDueEvents(outbox.application.id, 2100);
    expect(await outbox.sweep()).toHaveLength(2000);
  });

  it("a sweep that finds 5,000 due events reads few of each application, however many it has", async () => {
    const outbox = await Outbox.open({ webhookUrl: receiver().url });
    await addApplications(250);
    await addDueEvents("app_0", 100);
    let enqueued = 0;
    const { rowsRead } = await outbox.billed(async () => (enqueued = await enqueueDueEvents(outbox.context)));
    expect(enqueued).toBe(5000);
    expect(rowsRead).toBeLessThan(10 * 250 * 25);
  });
});
