import { describe, expect, it } from "vitest";
import { consumeDeliveries } from "../../src/worker/webhooks/consumer.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { runSql } from "../support/home.ts";
import { messagesOf, Outbox } from "../support/outbox.ts";
import { answer, useReceivers } from "../support/receivers.ts";
import { until } from "../support/until.ts";

const receiver = useReceivers();
const HOUR = 3_600_000;

useQuietLog();

/** What `application disable` and `application enable` do. */
async function setDisabled({ application: { id } }: Outbox, disabledAt: number | null): Promise<void> {
  await runSql("UPDATE application SET disabled_at = ?2 WHERE id = ?1", id, disabledAt);
}

describe("the events of a disabled application wait (contract section 8)", () => {
  it("events of a disabled application are not sent, enqueued or held and use up no attempt, and are sent within a minute of enabling", async () => {
    const endpoint = receiver();
    const outbox = await Outbox.open({ webhookUrl: endpoint.url });
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

  it("events of a disabled application keep their state if there is no URL or the endpoint is held", async () => {
    const endpoint = receiver(() => answer(410));
    const outbox = await Outbox.open({ webhookUrl: endpoint.url });
    const [gone, waiting] = [await outbox.issue(), await outbox.issue()];
    await outbox.deliver(gone);
    await setDisabled(outbox, outbox.now);
    await outbox.deliver(waiting);
    expect(await outbox.event(waiting)).toMatchObject({ state: "pending" });
    await outbox.setUrl(null);
    await outbox.deliver(waiting);
    expect(await outbox.event(waiting)).toMatchObject({ state: "pending" });
    await outbox.setUrl(endpoint.url);
    outbox.now += HOUR;
    expect(await outbox.sweep()).toEqual([]);
    expect(await outbox.event(gone)).toMatchObject({ state: "held" });
    await setDisabled(outbox, null);
    expect(await outbox.sweep()).toEqual([gone, waiting]);
  });

  it("an attempt that is running when the application is disabled finishes, and none follows it", async () => {
    const endpoint = receiver();
    const outbox = await Outbox.open({ webhookUrl: endpoint.url });
    const event = await outbox.issue();
    let fail = () => {};
    endpoint.answering = () => new Promise((resolve) => (fail = () => resolve(answer(500))));
    await outbox.consume(event);
    await until(() => expect(endpoint.received).toHaveLength(1));
    await setDisabled(outbox, outbox.now);
    fail();
    await outbox.settle();
    expect(await outbox.event(event)).toMatchObject({ state: "pending", attempts: 1, lastStatus: 500 });
    outbox.now += HOUR;
    expect(await outbox.sweep()).toEqual([]);
    await outbox.deliver(event);
    expect(endpoint.received).toHaveLength(1);
  });

  it("other applications' events do not wait for a disabled application", async () => {
    const endpoint = receiver();
    const [disabled, other] = [
      await Outbox.open({ webhookUrl: endpoint.url }),
      await Outbox.open({ webhookUrl: endpoint.url }),
    ];
    const wakeUps = [];
    for (const outbox of [disabled, other, disabled]) {
      wakeUps.push({ applicationId: outbox.application.id, eventId: await outbox.issue() });
    }
    await setDisabled(disabled, disabled.now);
    await consumeDeliveries(() => other.context, messagesOf(wakeUps));
    await other.settle();
    expect(endpoint.received).toHaveLength(1);
    expect(await other.events()).toMatchObject([{ state: "delivered" }]);
  });
});
