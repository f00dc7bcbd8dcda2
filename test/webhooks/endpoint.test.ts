import { createExecutionContext, createMessageBatch } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import worker from "../../src/worker/index.ts";
import { releaseHeldEvents } from "../../src/worker/storage/webhook-backlog.ts";
import { HOUR } from "../support/clock.ts";
import { runSql } from "../support/home.ts";
import { log } from "../support/log.ts";
import type { Outbox } from "../support/outbox.ts";
import { answer, type Receiver } from "../support/receivers.ts";
import { until } from "../support/until.ts";
import { useOutboxes } from "./support.ts";

const { open, receiver } = useOutboxes();

/** An endpoint that said 410 to one event. */
async function gone(): Promise<{ endpoint: Receiver; outbox: Outbox; event: string }> {
  const { endpoint, outbox } = await open(() => answer(410));
  const event = await outbox.issue();
  await outbox.deliver(event);
  return { endpoint, outbox, event };
}

const idsOf = ({ received }: Receiver): (string | null)[] => received.map(({ headers }) => headers.get("webhook-id"));
const states = async (outbox: Outbox): Promise<string[]> => (await outbox.events()).map(({ state }) => state);

describe("an endpoint is held after 410 alone, and its events are kept (contract section 8)", () => {
  it("after 410 an endpoint is held at once: the event and all later ones are held, and nothing is sent", async () => {
    const { endpoint, outbox, event } = await gone();
    expect(await outbox.event(event)).toMatchObject({ state: "held", attempts: 1, lastStatus: 410 });
    expect(await outbox.heldAt()).toBe(outbox.now);
    const later = await outbox.issue();
    expect(await states(outbox)).toEqual(["held", "held"]);
    outbox.now += 1000 * HOUR;
    await outbox.deliver(event, later);
    expect(await outbox.sweep()).toEqual([]);
    expect(await states(outbox)).toEqual(["held", "held"]);
    expect(endpoint.received).toHaveLength(1);
  });

  it("a slow success that began in a former hold does not end the present one", async () => {
    const { endpoint, outbox } = await gone();
    const [slow, refused] = [await outbox.addTestEvent(), await outbox.addTestEvent()];
    const late = Promise.withResolvers<Response>();
    endpoint.answering = ({ headers }) => (headers.get("webhook-id") === slow ? late.promise : answer(410));
    await outbox.consume(slow);
    await until(() => expect(endpoint.received).toHaveLength(2));
    await outbox.setUrl(endpoint.url);
    outbox.now++;
    await outbox.consume(refused);
    await until(async () => expect(await outbox.heldAt()).toBe(outbox.now));
    late.resolve(answer(200));
    await outbox.settle();
    expect(await outbox.heldAt()).toBe(outbox.now);
  });
});

describe("a test event shows whether a held endpoint works again (contract sections 8 and 10)", () => {
  it("a test event is sent while the endpoint is held, and 2xx releases the held events, oldest first", async () => {
    const { endpoint, outbox, event } = await gone();
    const held = [event];
    for (let count = 0; count < 4; count++) {
      outbox.now += 1000;
      held.push(await outbox.issue());
    }
    endpoint.answering = () => answer(200);
    endpoint.received.length = 0;
    outbox.now += HOUR;
    const test = await outbox.addTestEvent();
    outbox.now += 5000;
    expect(await outbox.sweep()).toEqual([test]);
    await outbox.deliver(test);
    expect(idsOf(endpoint)).toEqual([test]);
    expect(await outbox.event(test)).toMatchObject({ state: "delivered", attempts: 1, lastStatus: 200 });
    expect(await outbox.heldAt()).toBeNull();
    const due = await outbox.sweep();
    expect(due).toEqual(held);
    for (const one of due) await outbox.deliver(one);
    expect(idsOf(endpoint)).toEqual([test, ...held]);
    for (const row of await outbox.events()) expect(row).toMatchObject({ state: "delivered", attempts: 1 });
  });

  it("any other response to a test event releases nothing, and the test is not repeated", async () => {
    const { endpoint, outbox, event } = await gone();
    endpoint.answering = () => answer(410);
    const test = await outbox.addTestEvent();
    await outbox.deliver(test, test);
    expect(await outbox.event(test)).toMatchObject({ state: "exhausted", attempts: 1, lastStatus: 410 });
    outbox.now += 1000 * HOUR;
    expect(await outbox.sweep()).toEqual([]);
    expect(await outbox.event(event)).toMatchObject({ state: "held" });
    expect(idsOf(endpoint)).toEqual([event, test]);
  });

  it("a test event ends without an attempt if the URL was removed meanwhile", async () => {
    const { endpoint, outbox } = await open(() => answer(200));
    const test = await outbox.addTestEvent();
    await outbox.setUrl(null);
    await outbox.deliver(test);
    expect(await outbox.event(test)).toMatchObject({ state: "exhausted", attempts: 0, lastOutcome: "no-url" });
    expect(endpoint.received).toEqual([]);
  });
});

describe("an administrator sets the URL (contract sections 8 and 10)", () => {
  it("when an administrator sets another URL during an attempt, the old endpoint's response does not affect the new one", async () => {
    const { endpoint, outbox } = await open(() => answer(500));
    let finish = () => {};
    endpoint.answering = () => new Promise((resolve) => (finish = () => resolve(answer(410))));
    const event = await outbox.issue();
    await outbox.consume(event);
    await until(() => expect(endpoint.received).toHaveLength(1));
    const other = receiver();
    await outbox.setUrl(other.url);
    finish();
    await outbox.settle();
    expect(await outbox.heldAt()).toBeNull();
    outbox.now += 60_000;
    await outbox.deliver(...(await outbox.sweep()));
    expect(await outbox.event(event)).toMatchObject({ state: "delivered" });
    expect(idsOf(other)).toEqual([event]);
  });

  it("when an administrator removes the URL, nothing is sent, and waiting events are kept until there is a URL again", async () => {
    const { endpoint, outbox } = await open(() => answer(500));
    const [tried, untried] = [await outbox.issue(), await outbox.issue()];
    await outbox.deliver(tried);
    await outbox.setUrl(null);
    await outbox.issue("nobody is told");
    outbox.now += HOUR;
    await outbox.deliver(...(await outbox.sweep()));
    expect(await states(outbox)).toEqual(["held", "held"]);
    expect(await outbox.sweep()).toEqual([]);
    expect(endpoint.received).toHaveLength(1);
    endpoint.answering = () => answer(200);
    await outbox.setUrl(endpoint.url);
    await outbox.deliver(...(await outbox.sweep()));
    expect(await states(outbox)).toEqual(["delivered", "delivered"]);
    expect(idsOf(endpoint).slice(1).sort()).toEqual([tried, untried].toSorted());
  });

  it("the sweep releases some events of each endpoint at a time, whatever another's backlog", async () => {
    const [one, two, held] = [await gone(), await gone(), await gone()];
    for (const { outbox } of [one, two, held]) for (let count = 0; count < 3; count++) await outbox.issue();
    await one.outbox.setUrl(one.endpoint.url);
    await two.outbox.setUrl(two.endpoint.url);
    expect(await releaseHeldEvents(one.outbox.context.db, 3)).toBe(6);
    expect(await releaseHeldEvents(one.outbox.context.db, 3)).toBe(2);
    expect(await releaseHeldEvents(one.outbox.context.db, 3)).toBe(0);
    expect(await states(held.outbox)).toEqual(Array(4).fill("held"));
  });
});

/** What `application disable` and `application enable` do. */
async function setDisabled({ application: { id } }: Outbox, disabledAt: number | null): Promise<void> {
  await runSql("UPDATE application SET disabled_at = ?2 WHERE id = ?1", id, disabledAt);
}

describe("the events of an application that is disabled, or of which D1 lacks changes (contract section 8)", () => {
  it("events of a disabled application are not sent, enqueued or held and use up no attempt, and are sent within a minute of enabling", async () => {
    const { endpoint, outbox } = await open();
    const events = [await outbox.issue(), await outbox.issue()];
    const test = await outbox.addTestEvent();
    await setDisabled(outbox, outbox.now);
    const before = await outbox.events();
    for (let hours = 0; hours < 200; hours += 40) {
      outbox.now += 40 * HOUR;
      expect(await outbox.sweep()).toEqual([]);
      await outbox.deliver(...events, test);
    }
    expect(endpoint.received).toEqual([]);
    // Only that they are due may be recorded.
    expect(await outbox.events()).toEqual(before.map((event) => ({ ...event, dueAt: event.dueAt ?? 0 })));

    await setDisabled(outbox, null);
    outbox.now += 60_000;
    const due = await outbox.sweep();
    expect(due).toEqual([test, ...events]);
    await outbox.deliver(...due);
    expect(endpoint.received).toHaveLength(3);
    for (const row of await outbox.events()) expect(row).toMatchObject({ state: "delivered", attempts: 1 });
  });

  it("due events wait while D1 lacks changes after a restore (section 21), and are sent within a minute afterwards", async () => {
    const { endpoint, outbox } = await open();
    const test = await outbox.addTestEvent();
    const setReadableFrom = (value: string) =>
      runSql(`UPDATE application_head SET readable_from = ${value} WHERE application_id = ?`, outbox.application.id);
    await setReadableFrom("sequence + 1");
    outbox.now += HOUR;
    expect(await outbox.sweep()).toEqual([]);
    await outbox.deliver(test);
    expect(endpoint.received).toEqual([]);
    await setReadableFrom("0");
    outbox.now += 60_000;
    expect(await outbox.sweep()).toEqual([test]);
    await outbox.deliver(test);
    expect(endpoint.received).toHaveLength(1);
  });

  it("events of a disabled application keep their state if there is no URL or the endpoint is held", async () => {
    const { endpoint, outbox } = await open(() => answer(410));
    const [refused, waiting] = [await outbox.issue(), await outbox.issue()];
    await outbox.deliver(refused);
    await setDisabled(outbox, outbox.now);
    await outbox.deliver(waiting);
    expect(await outbox.event(waiting)).toMatchObject({ state: "pending" });
    await outbox.setUrl(null);
    await outbox.deliver(waiting);
    expect(await outbox.event(waiting)).toMatchObject({ state: "pending" });
    await outbox.setUrl(endpoint.url);
    outbox.now += HOUR;
    expect(await outbox.sweep()).toEqual([]);
    expect(await outbox.event(refused)).toMatchObject({ state: "held" });
    await setDisabled(outbox, null);
    expect(await outbox.sweep()).toEqual([refused, waiting]);
  });
});

it("a message that the queue gave up on is logged and recorded, and the sweep still sends its event (contract section 8)", async () => {
  const { outbox } = await open();
  const event = await outbox.issue();
  const body = { applicationId: outbox.application.id, eventId: event };
  const giveUp = () =>
    worker.queue(
      createMessageBatch("badge-webhooks-dead", [{ id: "1", timestamp: new Date(), attempts: 1, body }]),
      env,
      createExecutionContext(),
    );
  await giveUp();
  const { id: application } = outbox.application;
  const lines = log.lines().filter((line) => line.application === application);
  expect(lines).toEqual([{ level: "error", event: "dead-letter", application, eventId: event }]);
  expect(await outbox.event(event)).toMatchObject({ state: "pending", lastOutcome: "dead-lettered" });
  outbox.now += 60_000;
  expect(await outbox.sweep()).toEqual([event]);
  await outbox.deliver(event);
  expect(await outbox.event(event)).toMatchObject({ state: "delivered", lastOutcome: "answered" });
  await giveUp();
  expect(await outbox.event(event)).toMatchObject({ state: "delivered", lastOutcome: "answered" });
});
