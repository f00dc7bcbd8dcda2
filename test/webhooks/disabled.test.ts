import { describe, expect, it } from "vitest";
import { useQuietLog } from "../invitations/support/log.ts";
import { runSql } from "../support/home.ts";
import type { Outbox } from "../support/outbox.ts";
import { answer } from "../support/receivers.ts";

import { useOutboxes } from "./support.ts";

const { open } = useOutboxes();
const HOUR = 3_600_000;

useQuietLog();

/** What `application disable` and `application enable` do. */
async function setDisabled({ application: { id } }: Outbox, disabledAt: number | null): Promise<void> {
  await runSql("UPDATE application SET disabled_at = ?2 WHERE id = ?1", id, disabledAt);
}

describe("the events of a disabled application wait (contract section 8)", () => {
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

  it("events of a disabled application keep their state if there is no URL or the endpoint is held", async () => {
    const { endpoint, outbox } = await open(() => answer(410));
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
});
