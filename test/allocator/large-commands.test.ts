import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { COPY_PAGE_ROWS } from "../../src/shared/limits/allocator-limits.ts";
import { deliveryMessage } from "../../src/worker/webhooks/delivery-message.ts";
import { block, issueTo } from "../badges/life-support.ts";
import { requestQuietly } from "../badges/support.ts";
import { aroundObjectD1 } from "../support/allocator.ts";
import { createApplication } from "../support/application.ts";
import { useStandingClock } from "../support/clock.ts";
import { isAbout, LOST } from "../support/faults.ts";
import { queueThat } from "../support/queue.ts";
import { badgeRows } from "../support/rows.ts";
import { crowded, ENTRY, expectInSync, fillBadges, headOf, sequenceOf } from "./support.ts";

const BADGES = 3_000;
/** As many as take some ten batches. */
const FEWER_BADGES = 400;
const ORDINARY = { columns: { metadata: '{"os":"iOS","osVersion":"20.1"}' } };

describe("many badges (contract sections 7, 12 and 21)", () => {
  it("blocking revokes 3,000 badges in one transaction, which D1 gets entry by entry, and another application's call beside it ends before", {
    timeout: 60_000,
  }, async () => {
    const [application, other] = [await crowded(BADGES, ORDINARY), await crowded(1)];
    const before = await sequenceOf(application);
    let sentBefore = Number.POSITIVE_INFINITY;
    const blockedIn: number[] = [];
    const sizes: number[] = [];
    await aroundObjectD1(application, () => (statements, send) => {
      if (isAbout(statements, ENTRY)) {
        sizes.push(JSON.stringify(statements.map(({ parameters }) => parameters)).length);
        if (sizes.length === 2) {
          void requestQuietly(other, "phone", { userId: "bob" }).then(() => {
            sentBefore = sizes.length;
          });
        }
      }
      if (isAbout(statements, "INSERT INTO blocked_user")) blockedIn.push(sizes.length);
      return send();
    });
    const { status, body } = await block(application, "mallory");
    expect([status, body.revoked]).toMatchObject([200, { length: BADGES }]);
    expect((await sequenceOf(application)) - before).toBeGreaterThan(5);
    // The row that blocks the user comes last.
    expect(blockedIn).toEqual([sizes.length]);
    expect(sentBefore).toBeLessThan(sizes.length);
    expect(Math.max(...sizes)).toBeLessThan(1_000_000);
    expect((await badgeRows(application)).filter(({ state }) => state !== "revoked")).toEqual([]);
    await expectInSync(application);
  });

  it("a large block is not undone when the allocator ends half-way: the next instance sends the rest", async () => {
    const application = await crowded(FEWER_BADGES, ORDINARY);
    let batches = 0;
    await aroundObjectD1(application, (state) => async (statements, send) => {
      if (!isAbout(statements, ENTRY) || ++batches !== 3) return send();
      await state.storage.sync();
      state.abort("the allocator ends");
      return new Promise(() => {});
    });
    const { status, body } = await block(application, "mallory");
    // The repeated call finds its result in the log.
    expect([status, body.revoked]).toMatchObject([200, { length: FEWER_BADGES }]);
    await expectInSync(application);
  });

  it("readers are not kept out when a batch of a large block loses its response: D1 was not restored", async () => {
    const application = await crowded(FEWER_BADGES, ORDINARY);
    let batches = 0;
    const flags: number[] = [];
    await aroundObjectD1(application, () => async (statements, send) => {
      if (!isAbout(statements, ENTRY)) return send();
      const result = await send();
      flags.push((await headOf(application)).readableFrom);
      if (++batches === 3) throw LOST;
      return result;
    });
    expect((await block(application, "mallory")).status).toBe(200);
    expect(flags.length).toBeGreaterThan(4);
    expect(new Set(flags)).toEqual(new Set([0]));
    await expectInSync(application);
  });

  it("an allocator without rows reads several pages of badges with maximal metadata", { timeout: 60_000 }, async () => {
    const application = await crowded(COPY_PAGE_ROWS + 100);
    await issueTo(application, "phone", "bob");
    await expectInSync(application);
  });
});

describe("webhook events of a large command (contract sections 8 and 21)", () => {
  useStandingClock();

  it("an application's deliveries begin 20 ms apart, so that D1 is left to others, also those of its next calls", async () => {
    const webhookUrl = "https://receiver.example/hook";
    const application = await createApplication({ size: 1000, webhookUrl, events: "badge:created,badge:revoked" });
    await fillBadges(application, 120, ORDINARY);
    const waits: number[] = [];
    const queue = queueThat(() => {});
    vi.spyOn(env.WEBHOOKS, "sendBatch").mockImplementation((messages) => {
      const sent = [...messages];
      for (const { delaySeconds = 0, body } of sent) {
        waits.push(1000 * delaySeconds + (deliveryMessage.parse(body).afterMilliseconds ?? 0));
      }
      return queue.sendBatch(sent);
    });
    expect((await block(application, "mallory")).status).toBe(200);
    await issueTo(application, "phone", "bob");
    expect(waits).toEqual(Array.from({ length: 121 }, (_, place) => 20 * place));
  });
});
