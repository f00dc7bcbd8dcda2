import { describe, expect, it } from "vitest";
import { invitationLinkOf } from "../../src/shared/invitation-link.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith, countedLimit } from "../support/bindings.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, useStandingClock } from "../support/clock.ts";
import { type Answer, call, callServer, outcome, serverHeaders } from "../support/http.ts";
import { claim, invite, requestInvitation, revoke } from "../support/invitations.ts";

useStandingClock();

const describeIt = ({ id }: { id: string }, invitationtoken: string): Promise<Answer> =>
  call("GET", "/v1/invitation", { headers: { applicationid: id, invitationtoken } });

describe("GET /v1/invitation (contract section 27)", () => {
  it("GET /v1/invitation says who is expected, where and when, as it was sent, and consumes nothing", async () => {
    const application = await createApplication({ name: "Main Street" });
    const sent = {
      ...{ expiresAt: ahead(DAY), badgeStartsAt: ahead(HOUR), badgeExpiresAt: ahead(2 * DAY) },
      ...{ name: "Ann Lee", userId: "ann" },
    };
    const { body } = await requestInvitation(application, sent, serverHeaders(application));
    const token = String(body.id);
    for (let reads = 0; reads < 2; reads++) {
      const described = await describeIt(application, token);
      expect(described.status).toBe(200);
      expect(described.body).toEqual({ state: "pending", ...sent, applicationName: "Main Street" });
    }
    expect(outcome(await claim(application, "phone", "ann", token))).toBe("201");
  });

  it("GET /v1/invitation has the state by the clock, before the object has recorded it (section 19), and not who claimed", async () => {
    const application = await createApplication();
    const badgeExpiresAt = ahead(MINUTE);
    const [expiring, revoked, claimed] = [
      await invite(application),
      await invite(application),
      await invite(application),
    ];
    const ending = await requestInvitation(application, { expiresAt: ahead(HOUR + 1), badgeExpiresAt });
    expect((await revoke(application, revoked.token)).status).toBe(200);
    expect((await claim(application, "phone", "walt", claimed.token)).status).toBe(201);
    const described = async (token: unknown) => (await describeIt(application, String(token))).body;
    const times = { expiresAt: ahead(HOUR), applicationName: "Test" };
    expect(await described(expiring.token)).toEqual({ state: "pending", ...times });
    expect(await described(revoked.token)).toEqual({ state: "revoked", ...times });
    expect(await described(claimed.token)).toEqual({ state: "claimed", ...times });
    moveClock(MINUTE - 1);
    expect(await described(ending.body.id)).toMatchObject({ state: "pending", badgeExpiresAt });
    moveClock(1);
    expect(await described(ending.body.id)).toMatchObject({ state: "expired" });
    moveClock(HOUR - MINUTE - 1);
    expect(await described(expiring.token)).toMatchObject({ state: "pending" });
    moveClock(1);
    expect(await described(expiring.token)).toMatchObject({ state: "expired" });
    expect(await described(revoked.token)).toMatchObject({ state: "revoked" });
  });

  it("GET /v1/invitation has the times of the pass after the visit was moved, and those that were sent before", async () => {
    const application = await createApplication();
    const times = { badgeStartsAt: ahead(HOUR).replace("Z", "+00:00"), badgeExpiresAt: ahead(2 * HOUR) };
    const { body } = await requestInvitation(application, { expiresAt: ahead(HOUR), ...times });
    const described = async () => (await describeIt(application, String(body.id))).body;
    const { body: badge } = await claim(application, "phone", "visitor", body.id);
    expect(await described()).toMatchObject(times);
    const moved = { startsAt: ahead(DAY), expiresAt: ahead(DAY + HOUR) };
    await callServer(application, "PATCH", `/v1/badges/${badge.badgeId}`, moved);
    expect(await described()).toMatchObject({ badgeStartsAt: moved.startsAt, badgeExpiresAt: moved.expiresAt });
    await callServer(application, "PATCH", `/v1/badges/${badge.badgeId}`, { expiresAt: null });
    expect(await described()).not.toHaveProperty("badgeExpiresAt");
  });

  it.each([
    ["an invitation", "DEVICE_LIMIT", "200"],
    ["an address", "CLIENT_IP_LIMIT", "429 RATE_LIMITED"],
  ])("GET /v1/invitation is limited for %s of an application (section 7)", async (_, limit, another) => {
    const bindings = { [limit]: countedLimit(1) };
    const read = async ({ id: applicationid }: TestApplication, invitationtoken: string) => {
      const headers = { applicationid, invitationtoken, "cf-connecting-ip": "192.0.2.1" };
      return outcome(await callWith(bindings, "GET", "/v1/invitation", { headers }));
    };
    const [application, other] = [await createApplication(), await createApplication()];
    const { token } = await invite(application);
    expect([await read(application, token), await read(application, token)]).toEqual(["200", "429 RATE_LIMITED"]);
    expect(await read(application, (await invite(application)).token)).toBe(another);
    expect(await read(other, (await invite(other)).token)).toBe("200");
  });
});

// The page's link, and the administrator's: test/http/overview.test.ts.
it("an invitation has no link without PUBLIC_URL, or where the page for visitors is removed (contract section 27)", () => {
  const [application, publicUrl] = [{ applicationId: "app_1", own: null }, "https://badges.example.com"];
  for (const deployment of [
    { publicUrl: null, hasPass: true },
    { publicUrl, hasPass: false },
  ]) {
    expect(invitationLinkOf(application, deployment)).toBeNull();
  }
});
