import { describe, expect, it } from "vitest";
import { createApplication, type TestApplication } from "../support/application.ts";
import { ahead, useStandingClock } from "../support/clock.ts";
import { callServer, outcome, requestBadge } from "../support/http.ts";
import { claim, invite, listedNumbers } from "../support/invitations.ts";
import { block, getBadge, issueTo, setEnd, takeStep } from "./life-support.ts";

useStandingClock();

// Beside new badges of the user: the simulation.
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
