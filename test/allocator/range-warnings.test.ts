import { evictDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { inParallel } from "../badges/support.ts";
import { invite, revoke } from "../invitations/support/calls.ts";
import { allocatorOf } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { requestBadge } from "../support/http.ts";
import { linesOf } from "../support/log-lines.ts";

const warn = vi.spyOn(console, "warn");

beforeEach(() => {
  warn.mockReset().mockImplementation(() => {});
  vi.spyOn(console, "log").mockImplementation(() => {});
});

/** The warnings about an application that were logged since the last look. */
function warningsOf({ id }: TestApplication): unknown[] {
  const lines = linesOf(warn).filter(({ application }) => application === id);
  warn.mockClear();
  return lines;
}

/** At once, which the object does in few transactions. */
async function issueMany(application: TestApplication, count: number): Promise<void> {
  const issued = await inParallel(count, () => requestBadge(application, crypto.randomUUID(), { userId: "alice" }));
  expect(issued.map(({ status }) => status)).toEqual(issued.map(() => 201));
}

describe("a range that fills up (contract section 10)", () => {
  it("causes one warning when 90 % and one when 99 % of its numbers are used", async () => {
    const application = await createApplication({ size: 100 });
    const line = { level: "warn", event: "range-fills-up", application: application.id };
    await issueMany(application, 89);
    expect(warningsOf(application)).toEqual([]);
    await issueMany(application, 1);
    expect(warningsOf(application)).toEqual([{ ...line, usedPercent: 90, left: 10 }]);
    await evictDurableObject(allocatorOf(application));
    await issueMany(application, 8);
    expect(warningsOf(application)).toEqual([]);
    await issueMany(application, 1);
    expect(warningsOf(application)).toEqual([{ ...line, usedPercent: 99, left: 1 }]);
    await issueMany(application, 1);
    expect(warningsOf(application)).toEqual([]);
  });

  it("causes no second warning while the count hovers around a share", async () => {
    const application = await createApplication({ size: 100 });
    await issueMany(application, 70);
    const invitations = [];
    for (let place = 0; place < 20; place++) invitations.push(await invite(application));
    expect(warningsOf(application)).toMatchObject([{ usedPercent: 90, left: 10 }]);
    for (const { token } of invitations.slice(0, 10)) await revoke(application, token);
    await issueMany(application, 10);
    expect(warningsOf(application)).toEqual([]);
    for (const { token } of invitations.slice(10)) await revoke(application, token);
    await issueMany(application, 10);
    expect(warningsOf(application)).toEqual([]);
  });

  it("causes another warning after more than twice as many numbers were left", async () => {
    const application = await createApplication({ size: 100 });
    await issueMany(application, 70);
    const invitations = [];
    for (let place = 0; place < 20; place++) invitations.push(await invite(application));
    expect(warningsOf(application)).toMatchObject([{ usedPercent: 90, left: 10 }]);
    for (const { token } of invitations) await revoke(application, token);
    // By itself: the object looks once for each group, and 19 badges may be one group.
    await issueMany(application, 1);
    await issueMany(application, 18);
    expect(warningsOf(application)).toEqual([]);
    await issueMany(application, 1);
    expect(warningsOf(application)).toMatchObject([{ usedPercent: 90, left: 10 }]);
  });

  it("causes another warning when it was extended and the new part fills up", async () => {
    const application = await createApplication({ size: 20 });
    await issueMany(application, 18);
    expect(warningsOf(application)).toMatchObject([{ usedPercent: 90, left: 2 }]);
    await homeDatabase()
      .prepare("UPDATE application SET last_number = last_number + 20 WHERE id = ?")
      .bind(application.id)
      .run();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
    await issueMany(application, 17);
    expect(warningsOf(application)).toEqual([]);
    await issueMany(application, 1);
    expect(warningsOf(application)).toMatchObject([{ usedPercent: 90, left: 4 }]);
    vi.useRealTimers();
  });
});
