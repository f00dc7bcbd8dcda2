import { describe, expect, it } from "vitest";
import { statistics } from "../../src/shared/statistics-response.ts";
import { fillBadges, headOf } from "../allocator/support.ts";
import { issueTo, takeStep, withBadge } from "../badges/life-support.ts";
import { ring } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, useStandingClock } from "../support/clock.ts";
import { callServer, requestBadge } from "../support/http.ts";
import { invite, revoke } from "../support/invitations.ts";
import { everythingStored } from "../support/stored.ts";

useStandingClock();

async function readStatistics(application: TestApplication) {
  const { status, body } = await callServer(application, "GET", "/v1/stats");
  expect(status).toBe(200);
  return body;
}

describe("GET /v1/stats (contract section 19)", () => {
  it.each([10, 21_000])("statistics are exact after each change of an application with %i badges", async (count) => {
    const application = await createApplication({ size: count + 10 });
    await fillBadges(application, count, { columns: { metadata: '{"os":"iOS"}' } });
    const number = await issueTo(application, "phone", "alice");
    await issueTo(application, "tablet", "alice");
    await takeStep(application, number, "suspend");
    const body = await readStatistics(application);
    expect(body).toMatchObject({
      numbers: { size: count + 10, issued: count + 2, used: count + 2, left: 8 },
      badgesByState: { active: count + 1, suspended: 1, revoked: 0, expired: 0, replaced: 0 },
      sampled: Math.min(20_000, count + 2),
      asOf: ahead(0),
    });
    await takeStep(application, number, "revoke");
    expect(await readStatistics(application)).toMatchObject({ badgesByState: { suspended: 0, revoked: 1 } });
  });

  it("statistics list the 15 most frequent values of a metadata field, and count the badges with others", async () => {
    const application = await createApplication();
    // Two badges with each of 15 systems, then one with each of two others.
    for (let place = 0; place < 32; place++) {
      const metadata = { os: `OS ${place < 30 ? place % 15 : place}` };
      await requestBadge(application, `phone ${place}`, { userId: "alice", metadata });
    }
    const { os } = statistics.parse(await readStatistics(application)).badges;
    expect(os.values).toHaveLength(15);
    expect(os.values[0]).toEqual({ value: "OS 0", badges: 2 });
    expect(os.others).toBe(2);
  });

  it("statistics count new badges by day for 90 days, with gaps", async () => {
    const application = await createApplication();
    const issue = async (count: number) => {
      for (let place = 0; place < count; place++) await issueTo(application, crypto.randomUUID(), "alice");
    };
    for (const [count, pause] of [
      [2, 3],
      [1, 80],
      [3, 20],
      [1, -1],
      // While the clock is a day back, a badge counts for the last day.
      [1, 1],
    ] as const) {
      await issue(count);
      moveClock(pause * DAY);
    }
    const body = await readStatistics(application);
    if (!Array.isArray(body.badgesPerDay)) throw new Error("days are a list");
    expect(body.badgesPerDay).toHaveLength(90);
    expect(body.badgesPerDay.at(-1)).toEqual({ day: ahead(0).slice(0, 10), badges: 2 });
    // 20 days ago; what is older than 90 days is not shown.
    expect(body.badgesPerDay.at(-21)).toEqual({ day: ahead(-20 * DAY).slice(0, 10), badges: 3 });
    expect(body.badgesPerDay.reduce((sum, { badges }) => sum + badges, 0)).toBe(5);
    moveClock(100 * DAY);
    await issue(1);
    // D1 drops the days that ended more than 90 days before the last one.
    expect(Object.values((await headOf(application)).pastDays)).toEqual([3, 2]);
  });

  it("statistics count a badge as expired from when the allocator records it, and numbers that rest", async () => {
    const { application, number } = await withBadge({ size: 3, reuseAfterSeconds: 60 });
    await callServer(application, "PATCH", `/v1/badges/${number}`, { expiresAt: ahead(HOUR) });
    moveClock(HOUR);
    await ring(application);
    expect(await readStatistics(application)).toMatchObject({ badgesByState: { active: 0, expired: 1 } });
    await revoke(application, (await invite(application)).token);
    const used = { size: 3, reserved: 0, coolingDown: 1, used: 2, left: 1, usedPercent: 66.6 };
    expect(await readStatistics(application)).toMatchObject({ numbers: used });
    moveClock(MINUTE);
    expect(await readStatistics(application)).toMatchObject({ numbers: { coolingDown: 0, used: 1, left: 2 } });
  });
});

it("metadata is stored with its badge alone: no row grows with those of other badges, however many they are (contract section 7)", async () => {
  const application = await createApplication();
  const largestRow = async () => {
    const rows = Object.values(await everythingStored([application])).flat();
    return Math.max(...rows.map((row) => JSON.stringify(row).length));
  };
  const logIn = (udid: string) => {
    const fields = ["deviceModel", "os", "osVersion", "sdkVersion"];
    const metadata = Object.fromEntries(fields.map((field) => [field, `${udid} `.padEnd(256, field)]));
    return requestBadge(application, udid, { userId: "alice", metadata });
  };
  for (let place = 0; place < 3; place++) expect((await logIn(`first ${place}`)).status).toBe(201);
  const before = await largestRow();
  for (let place = 0; place < 20; place++) expect((await logIn(`phone ${place}`)).status).toBe(201);
  const { body } = await callServer(application, "GET", "/v1/stats");
  expect(body).toMatchObject({ badgesByState: { active: 23 }, sampled: 23 });
  // Counters may have another digit.
  expect(await largestRow()).toBeLessThan(before + 50);
});
