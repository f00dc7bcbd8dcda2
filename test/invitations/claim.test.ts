import { decodeJwt } from "jose";
import { describe, expect, it } from "vitest";
import { createApplication, type TestApplication } from "../support/application.ts";
import { testContext } from "../support/context.ts";
import { requestBadge, sign } from "../support/http.ts";
import { sweep } from "../support/sweep.ts";
import { claim, invite, listedNumbers, outcome, revoke } from "./support/calls.ts";
import { ahead, HOUR, moveClock, SECOND, useStandingClock } from "./support/clock.ts";
import { useQuietLog } from "./support/log.ts";
import { RECORDED_EVENTS, readInvitation, readPayload, readRows } from "./support/storage.ts";

useQuietLog();
useStandingClock();

describe("presenting an invitation token (contract section 2)", () => {
  it("presenting a token gets 201 with the reserved number first, then always 200 with the same number", async () => {
    const application = await createApplication();
    const { token, number } = await invite(application);
    const first = await claim(application, "device", "alice", token);
    expect(first).toMatchObject({ status: 201 });
    expect(first.body).toEqual({ badgeId: String(number), publicKey: expect.any(String) });
    const again = await claim(application, "device", "alice", token);
    expect(again).toMatchObject({ status: 200, body: { badgeId: String(number) } });
    expect(again.body).not.toHaveProperty("publicKey");
    moveClock(2 * HOUR);
    expect(await claim(application, "device", "alice", token)).toMatchObject({ status: 200, body: again.body });
    expect(await requestBadge(application, "device", { userId: "alice" })).toMatchObject({
      status: 200,
      body: again.body,
    });
    expect(await listedNumbers(application)).toEqual([number]);
  });

  it("presenting a token gets 410 from the moment of expiry on, swept or not", async () => {
    const application = await createApplication();
    const [unswept, toRevoke, swept] = [
      await invite(application, ahead(SECOND)),
      await invite(application, ahead(SECOND)),
      await invite(application, ahead(SECOND)),
    ];
    moveClock(SECOND - 1);
    await sweep([testContext().context]);
    expect(await readInvitation(swept.token)).toMatchObject({ state: "pending" });
    moveClock(1);
    expect(await readInvitation(unswept.token)).toMatchObject({ state: "pending" });
    expect(outcome(await claim(application, "device", "alice", unswept.token))).toBe("410 EXPIRED_INVITATION");
    expect(outcome(await revoke(application, toRevoke.token))).toBe("410 EXPIRED_INVITATION");
    await sweep([testContext().context]);
    expect(await readInvitation(swept.token)).toMatchObject({ state: "expired" });
    for (const { token } of [unswept, swept]) {
      expect(outcome(await claim(application, "device", "alice", token))).toBe("410 EXPIRED_INVITATION");
    }
  });

  it("a token that is null, empty or blank counts as none, and a badge is issued as without", async () => {
    const application = await createApplication();
    for (const token of [null, "", "  "]) {
      expect(outcome(await claim(application, `device ${token}.`, "alice", token))).toBe("201");
    }
  });
});

describe("a failed request burns nothing (contract section 2)", () => {
  it("the token stays good after a request with a wrong or missing field or udid, or too much", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const { token, number } = await invite(application);
    for (const [refusal, udid, body] of [
      ["422 INVALID_METADATA", "device", { userId: "alice", metadata: { os: 1 } }],
      ["422 UNDEFINED_USERID", "device", {}],
      ["422 INVALID_USERID", "device", { userId: "a".repeat(256) }],
      ["422 INVALID_UDID", "u".repeat(256), { userId: "alice" }],
      ["413 PAYLOAD_TOO_LARGE", "device", { userId: "alice", more: "x".repeat(17_000) }],
    ] as const) {
      const answer = await requestBadge(application, udid, { ...body, invitationToken: token });
      expect(outcome(answer)).toBe(refusal);
      expect(await readInvitation(token)).toMatchObject({ state: "pending", claimDevice: null, claimUserId: null });
    }
    expect((await readRows(application)).events).toEqual([]);
    const claimed = await claim(application, "device", "alice", token);
    expect(claimed).toMatchObject({ status: 201, body: { badgeId: String(number) } });
  });
});

describe("the event of a claim (contract section 8)", () => {
  it("the event of a claim is recorded once, names the invitation, has the metadata, and nothing as replaced when there was no badge", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const { token, number } = await invite(application);
    const claimOn = (os: string) =>
      requestBadge(application, "device", { userId: "alice", metadata: { os }, invitationToken: token });
    for (const os of ["iOS", "Android"]) expect((await claimOn(os)).status).toBe(os === "iOS" ? 201 : 200);
    expect(outcome(await claim(application, "another", "bob", token))).toBe("409 CLAIMED_INVITATION");
    const { badges, events } = await readRows(application);
    expect(events).toHaveLength(1);
    const [event] = events.map(readPayload);
    expect(event).toMatchObject({ id: events[0]?.id, event: "badge:created", createdAt: new Date().toISOString() });
    const data = { id: String(number), userId: "alice", metadata: { os: "iOS" }, invitationId: token };
    expect(event?.data).toEqual(data);
    expect(badges).toMatchObject([{ metadata: '{"os":"Android"}' }]);
  });
});

describe("a claim by a user device that has a badge (contract section 2)", () => {
  async function signedNumber(application: TestApplication, udid: string): Promise<unknown> {
    const { body } = await sign(application, udid, { base64: "aGVsbG8=" });
    return Number(decodeJwt(String(body.signature)).sub);
  }

  it("a claim replaces the old number with the invitation's and retires it permanently", async () => {
    const size = 4;
    const application = await createApplication({ size, ...RECORDED_EVENTS });
    const old = Number((await requestBadge(application, "device", { userId: "alice" })).body.badgeId);
    const { token, number } = await invite(application);
    expect(await signedNumber(application, "device")).toBe(old);
    expect(outcome(await claim(application, "device", "alice", token))).toBe("201");

    expect(await listedNumbers(application)).toEqual([number]);
    expect(await signedNumber(application, "device")).toBe(number);
    const { badges, events } = await readRows(application);
    expect(badges.find((row) => row.number === old)).toMatchObject({
      ordinal: 1,
      state: "replaced",
      endedAt: Date.now(),
      supersededAt: Date.now(),
    });
    expect(events).toHaveLength(2);
    expect(events.map(readPayload).map(({ data }) => data)).toEqual(
      expect.arrayContaining([
        { id: String(old), userId: "alice" },
        { id: String(number), userId: "alice", invitationId: token, replacedBadgeId: String(old) },
      ]),
    );

    const issued: number[] = [];
    for (let device = 2; device < size; device++) {
      const { body } = await requestBadge(application, `device ${device}`, { userId: "bob" });
      issued.push(Number(body.badgeId));
    }
    expect(issued).not.toContain(old);
    const further = await requestBadge(application, "one too many", { userId: "bob" });
    expect(outcome(further)).toBe("503 NUMBERS_EXHAUSTED");
  });

  it("a claim of two invitations in a row keeps the second; the first token returns the present badge", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const first = await invite(application);
    const second = await invite(application);
    expect(outcome(await claim(application, "device", "alice", first.token))).toBe("201");
    expect(outcome(await claim(application, "device", "alice", second.token))).toBe("201");
    const now = { status: 200, body: { badgeId: String(second.number) } };
    expect(await claim(application, "device", "alice", first.token)).toMatchObject(now);
    expect(await claim(application, "device", "alice", second.token)).toMatchObject(now);
    expect(await requestBadge(application, "device", { userId: "alice" })).toMatchObject(now);
    expect(await listedNumbers(application)).toEqual([second.number]);
    expect(await signedNumber(application, "device")).toBe(second.number);
    const { events } = await readRows(application);
    const replaced = events.map(readPayload).map(({ data }) => data.replacedBadgeId);
    expect(new Set(replaced)).toEqual(new Set([undefined, String(first.number)]));
    expect(replaced).toHaveLength(2);
    expect(outcome(await claim(application, "another", "alice", first.token))).toBe("409 CLAIMED_INVITATION");
    expect(outcome(await revoke(application, first.token))).toBe("409 CLAIMED_INVITATION");
  });
});
