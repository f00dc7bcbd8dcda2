import { describe, expect, it } from "vitest";
import { invitationLinkOf } from "../../src/shared/invitation-link.ts";
import { createApplication } from "../support/application.ts";
import { callWith, countedLimit } from "../support/bindings.ts";
import { homeDatabase } from "../support/home.ts";
import { type Answer, call, callServer, serverHeaders } from "../support/http.ts";
import { Meter } from "../support/meter.ts";
import { claim, invite, outcome, requestInvitation, revoke } from "./support/calls.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, useStandingClock } from "./support/clock.ts";
import { useQuietLog } from "./support/log.ts";

useQuietLog();
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

  it("GET /v1/invitation leaves out what was not sent", async () => {
    const application = await createApplication();
    const expiresAt = ahead(HOUR);
    const { token } = await invite(application, expiresAt);
    expect((await describeIt(application, token)).body).toEqual({
      ...{ state: "pending", expiresAt, applicationName: "Test" },
    });
  });

  it("GET /v1/invitation goes by the clock: expired from the moment on, before the object has recorded it (section 19)", async () => {
    const application = await createApplication();
    const { token } = await invite(application, ahead(MINUTE));
    moveClock(MINUTE - 1);
    expect((await describeIt(application, token)).body).toMatchObject({ state: "pending" });
    moveClock(1);
    expect((await describeIt(application, token)).body).toMatchObject({ state: "expired" });
  });

  it("GET /v1/invitation has the badge's end, if that is earlier (section 12)", async () => {
    const application = await createApplication();
    const { body } = await requestInvitation(application, { expiresAt: ahead(DAY), badgeExpiresAt: ahead(MINUTE) });
    moveClock(MINUTE);
    expect((await describeIt(application, String(body.id))).body).toMatchObject({ state: "expired" });
  });

  it("GET /v1/invitation knows a revoked and a claimed one, also after its end, and does not say who claimed it", async () => {
    const application = await createApplication();
    const [revoked, claimed] = [await invite(application, ahead(HOUR)), await invite(application, ahead(HOUR))];
    expect((await revoke(application, revoked.token)).status).toBe(200);
    expect((await claim(application, "phone", "walt", claimed.token)).status).toBe(201);
    moveClock(HOUR);
    expect((await describeIt(application, revoked.token)).body).toMatchObject({ state: "revoked" });
    const { body } = await describeIt(application, claimed.token);
    expect(body).toMatchObject({ state: "claimed" });
    expect(body).not.toHaveProperty("userId");
  });

  it("GET /v1/invitation has the times of the pass after the visit was moved, and those that were sent before", async () => {
    const application = await createApplication();
    const times = { badgeStartsAt: ahead(HOUR).replace("Z", "+00:00"), badgeExpiresAt: ahead(2 * HOUR) };
    const { body } = await requestInvitation(
      application,
      { expiresAt: ahead(HOUR), ...times },
      serverHeaders(application),
    );
    const described = async () => (await describeIt(application, String(body.id))).body;
    const { body: badge } = await claim(application, "phone", "visitor", body.id);
    expect(await described()).toMatchObject(times);
    const moved = { startsAt: ahead(DAY), expiresAt: ahead(DAY + HOUR) };
    await callServer(application, "PATCH", `/v1/badges/${badge.badgeId}`, moved);
    expect(await described()).toMatchObject({ badgeStartsAt: moved.startsAt, badgeExpiresAt: moved.expiresAt });
    await callServer(application, "PATCH", `/v1/badges/${badge.badgeId}`, { expiresAt: null });
    expect(await described()).not.toHaveProperty("badgeExpiresAt");
  });

  it("GET /v1/invitation tells another application nothing", async () => {
    const [application, other] = [await createApplication(), await createApplication()];
    const { token } = await invite(application);
    expect(outcome(await describeIt(other, token))).toBe("404 UNKNOWN_INVITATION");
  });

  it.each([
    ["an invitation", "DEVICE_LIMIT"],
    ["an address", "CLIENT_IP_LIMIT"],
  ])("GET /v1/invitation is limited for %s (section 7)", async (_, limit) => {
    const application = await createApplication();
    const { token } = await invite(application);
    const headers = { applicationid: application.id, invitationtoken: token, "cf-connecting-ip": "192.0.2.1" };
    const bindings = { [limit]: countedLimit(1) };
    const read = async () =>
      outcome(await callWith(bindings, new Request("https://badges.example/v1/invitation", { headers })));
    expect([await read(), await read()]).toEqual(["200", "429 RATE_LIMITED"]);
  });

  it("GET /v1/invitation costs one round trip to D1 and no call of the object", async () => {
    const application = await createApplication();
    const { token } = await invite(application);
    const meter = new Meter(application);
    const headers = { applicationid: application.id, invitationtoken: token };
    const read = () => meter.request(new Request("https://badges.example/v1/invitation", { headers }));
    await meter.measure(read);
    // A search by application would read these, too.
    const others = Array.from({ length: 20 }, (_, place) =>
      homeDatabase()
        .prepare(
          `INSERT INTO invitation (digest, application_id, number, state, creator_device, expires_at, expires_at_time, created_at)
           VALUES (?1, ?2, 0, 'revoked', '', '', 0, 0)`,
        )
        .bind(`other ${place}`, application.id),
    );
    await homeDatabase().batch(others);
    expect(await meter.measure(read)).toMatchObject({ d1RoundTrips: 1, objectCalls: 0, d1RowsRead: 2 });
  });
});

describe("the link of an invitation (contract section 27)", () => {
  const own = { applicationId: "app_1", own: "https://app.example.com/{token}" };
  const none = { applicationId: "app_1", own: null };
  const publicUrl = "https://badges.example.com";

  it.each([
    [
      "is the page for visitors, with the token behind # alone",
      none,
      { publicUrl, hasPass: true },
      `${publicUrl}/pass#app_1/{token}`,
    ],
    ["is the administrator's, if there is one", own, { publicUrl, hasPass: true }, own.own],
    ["is none without PUBLIC_URL", none, { publicUrl: null, hasPass: true }, null],
    ["is none where the page is removed", none, { publicUrl, hasPass: false }, null],
  ])("%s", (_, application, deployment, expected) => {
    expect(invitationLinkOf(application, deployment)).toBe(expected);
  });
});
