import { describe, expect, it } from "vitest";
import { ENTRY } from "../allocator/support.ts";
import { claim, invite, listedNumbers, outcome } from "../invitations/support/calls.ts";
import { ahead, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { isAbout } from "../support/faults.ts";
import { callServer, requestBadge } from "../support/http.ts";
import { badgeRows } from "../support/rows.ts";
import { until } from "../support/until.ts";
import { block, getBadge, issueTo, setEnd, takeStep } from "./life-support.ts";
import { inParallel, requestQuietly } from "./support.ts";

useQuietLog();
useStandingClock();

describe("blocking a user (contract section 12)", () => {
  it("a block revokes every active, suspended or expired badge, and returns only the numbers that it revoked", async () => {
    const application = await createApplication();
    const active = await issueTo(application, "phone-1", "alice");
    const suspended = await issueTo(application, "phone-2", "alice");
    await takeStep(application, suspended, "suspend");
    const expired = await issueTo(application, "phone-3", "alice");
    await setEnd(application, expired, ahead(-1));
    await takeStep(application, await issueTo(application, "phone-4", "alice"), "revoke");
    const replaced = await issueTo(application, "phone-5", "alice");
    const { token, number } = await invite(application);
    expect((await claim(application, "phone-5", "alice", token)).status).toBe(201);
    const other = await issueTo(application, "phone-1", "bob");
    const ended = [active, suspended, expired, String(number)];
    const { status, body } = await block(application, "alice");
    expect([status, body]).toEqual([200, { userId: "alice", blocked: true, revoked: expect.any(Array) }]);
    expect(new Set(Object.values(body.revoked ?? {}))).toEqual(new Set(ended));
    for (const id of ended) expect((await getBadge(application, id)).body.state).toBe("revoked");
    expect((await getBadge(application, replaced)).body.state).toBe("replaced");
    expect((await block(application, "alice")).body).toEqual({ userId: "alice", blocked: true, revoked: [] });
    expect(await listedNumbers(application)).toEqual([Number(other)]);
  });

  it("a block applies to exactly that user of that application, known or unknown, with any characters in the ID", async () => {
    const application = await createApplication();
    const other = await createApplication();
    const show = async (by: TestApplication, userId: string) =>
      (await callServer(by, "GET", `/v1/users/${encodeURIComponent(userId)}`)).body;
    for (const userId of ["nobody yet", "a/b", "ü%20", "😀"]) {
      expect(await show(application, userId)).toEqual({ userId, blocked: false });
      expect((await block(application, userId)).body).toEqual({ userId, blocked: true, revoked: [] });
      expect(await show(application, userId)).toEqual({ userId, blocked: true });
      expect(await show(other, userId)).toEqual({ userId, blocked: false });
      expect(outcome(await requestBadge(application, "phone", { userId }))).toBe("403 BLOCKED_USER");
    }
    expect((await requestBadge(application, "phone", { userId: "Nobody yet" })).status).toBe(201);
    // Not UTF-8: Latin-1 encodes ü like this.
    expect(outcome(await callServer(application, "PATCH", "/v1/users/j%FCrgen/block"))).toBe("422 INVALID_USERID");
  });
});

describe("a block that races (contract section 12)", () => {
  it("a block that races with fifty new badges of the user leaves none of them active", async () => {
    const application = await createApplication();
    const blocking = Promise.withResolvers<void>();
    let entries = 0;
    // The first badges are written before the block; the others come beside it.
    await aroundObjectD1(application, () => async (statements, send) => {
      if (isAbout(statements, ENTRY) && ++entries === 1) await blocking.promise;
      return send();
    });
    const ask = (place: number) => requestQuietly(application, `phone-${place}`, { userId: "alice" });
    const early = inParallel(30, ask);
    await until(() => expect(entries).toBe(1));
    const blocked = block(application, "alice");
    const late = inParallel(20, (place) => ask(30 + place));
    blocking.resolve();
    expect((await blocked).status).toBe(200);
    const answers = [...(await early), ...(await late)];
    const outcomes = new Set(answers.map(outcome));
    expect([...outcomes].filter((text) => text !== "201" && text !== "403 BLOCKED_USER")).toEqual([]);
    const rows = (await badgeRows(application)).filter(({ ordinal }) => ordinal !== null);
    expect(rows).toHaveLength(answers.filter(({ status }) => status === 201).length);
    expect(rows.filter(({ state }) => state !== "revoked")).toEqual([]);
    expect(await listedNumbers(application)).toEqual([]);
  });
});
