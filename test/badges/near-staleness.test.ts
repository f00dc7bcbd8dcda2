import { decodeJwt } from "jose";
import { describe, expect, it } from "vitest";
import { newPhone, rebind } from "../bound/support.ts";
import { createApplication } from "../support/application.ts";
import { UNLIMITED } from "../support/bindings.ts";
import { ahead, moveClock, SECOND, useStandingClock } from "../support/clock.ts";
import { FarD1 } from "../support/copy.ts";
import { aroundD1 } from "../support/d1.ts";
import { isAbout } from "../support/faults.ts";
import { bindDatabase, homeDatabase, runSql, testHome } from "../support/home.ts";
import { BADGE, callServer, requestBadge } from "../support/http.ts";
import { invite } from "../support/invitations.ts";
import { log } from "../support/log.ts";
import { setEnd, takeStep, withBadge } from "./life-support.ts";
import { ALICE, FarPhone, outcome, phoneWithBadge, tick, waitForCopy } from "./near-support.ts";
import { requestQuietly } from "./support.ts";

useStandingClock();

const ACTS = [(phone: FarPhone) => phone.logIn(), (phone: FarPhone) => phone.sign()];

const USED_UP: RateLimit = { limit: async () => ({ success: false }) };

describe("a login near a copy that lacks the phone's badge (contract sections 7 and 16)", () => {
  it.each(["a login", "a claim"])(
    "a phone that repeats %s whose response was lost is not limited by its address, a stranger is",
    async (what) => {
      const application = await createApplication();
      const d1 = await FarD1.create();
      const more = what === "a claim" ? { invitationToken: (await invite(application)).token } : {};
      const phone = await newPhone(application, "phone");
      const bindings = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: USED_UP, ...bindDatabase(d1.binding) };
      // No claim is limited by its address.
      const issued = await (what === "a claim" ? phone.logInTo(bindings, { more }) : phone.logIn());
      expect(issued.status).toBe(201);
      expect(outcome(await phone.logInTo(bindings, { more }))).toBe(`200 ${issued.body.badgeId}`);
      const stranger = await newPhone(application, "another phone");
      expect(outcome(await stranger.logInTo(bindings, { more }))).toBe("429 RATE_LIMITED");
    },
  );
});

describe("a revocation is obeyed everywhere within 90 seconds (contract section 16)", () => {
  it("a revocation is obeyed at once without a bookmark, and with any beside a copy that stopped before it", async () => {
    const { application, badgeId, phone } = await phoneWithBadge();
    const bookmarks = [phone.bookmark, `${testHome()}.00000000-00000000-00000000-${"0".repeat(32)}`];
    expect((await takeStep(application, badgeId, "revoke")).status).toBe(200);
    const errors = async (sent: readonly (string | null)[]) => {
      const all = new Set();
      for (const act of ACTS) {
        for (const bookmark of sent) {
          phone.bookmark = bookmark;
          all.add((await act(phone)).body.error);
        }
      }
      return [...all];
    };
    expect(await errors([null])).toEqual(["REVOKED_BADGE"]);
    moveClock(80 * SECOND);
    expect(await errors(bookmarks)).toEqual([undefined]);
    moveClock(10 * SECOND);
    expect(await errors(bookmarks)).toEqual(["REVOKED_BADGE"]);
  });

  it.each([
    ["four seconds ahead is recent: clocks differ", 4000, true],
    ["six seconds ahead counts as none: clocks differ by five at most", 6000, false],
    ["84 seconds old is recent", -84_000, true],
    ["85 seconds old counts as none: with five for clocks that differ, that makes 90", -85_000, false],
    ["that was never made counts as none", null, false],
  ])("a mark of time of a copy %s, so the primary is asked about a revocation", async (_, aheadBy, isRecent) => {
    const { application, phone, d1, badgeId } = await phoneWithBadge();
    if (aheadBy === null) await runSql("DELETE FROM heartbeat");
    else await runSql("UPDATE heartbeat SET ticked_at = ticked_at + ?", aheadBy);
    await d1.catchUp();
    await takeStep(application, badgeId, "revoke");
    const { bookmark } = phone;
    for (const act of ACTS) {
      // With the bookmark that the primary gives, the copy would not respond.
      phone.bookmark = bookmark;
      const { status, trips } = await act(phone);
      expect([status, trips.far === 0]).toEqual(isRecent ? [200, true] : [403, false]);
    }
    await tick();
    await d1.catchUp();
    expect((await phone.logIn()).status).toBe(403);
  });
});

describe("what a copy does not grant is decided at the primary (contract section 16)", () => {
  it("a badge that has a later end, or was resumed, since the copy's state is granted", async () => {
    const { application, phone, d1, badgeId } = await phoneWithBadge();
    await takeStep(application, badgeId, "suspend");
    await d1.catchUp();
    await takeStep(application, badgeId, "resume");
    for (const act of ACTS) expect((await act(phone)).status).toBe(200);
    await setEnd(application, badgeId, ahead(5 * SECOND));
    await d1.catchUp();
    await setEnd(application, badgeId, null);
    moveClock(10 * SECOND);
    for (const act of ACTS) expect((await act(phone)).status).toBe(200);
  });

  it("a login with a badge that the copy does not have yet succeeds, even when no number is left", async () => {
    const { application, d1 } = await phoneWithBadge({ size: 2 });
    // The allocator knows it as the invitation's, so it looks for another number.
    const { token: invitationToken, number } = await invite(application);
    expect((await requestBadge(application, "other", { ...ALICE, invitationToken })).status).toBe(201);
    const other = new FarPhone(application, "other", d1);
    expect(outcome(await other.logIn())).toBe(`200 ${number}`);
    expect(outcome(await other.sign())).toBe("200 signature");
    const third = new FarPhone(application, "third", d1);
    expect(outcome(await third.logIn())).toBe("503 NUMBERS_EXHAUSTED");
  });

  it("a login with a proof binds an unbound badge, which a rebind that the copy lacks has allowed (section 15)", async () => {
    const { application, phone, badgeId } = await phoneWithBadge();
    await rebind(application, badgeId);
    const owner = await newPhone(application, phone.udid);
    const { body } = await phone.call(BADGE, ALICE, { DPoP: await owner.prove(BADGE, JSON.stringify(ALICE)) });
    expect(body).toEqual({ badgeId, keyThumbprint: await owner.thumbprint() });
  });

  it("a login that makes another badge the device's current one is decided at the primary", async () => {
    const { phone, d1, badgeId } = await phoneWithBadge();
    await phone.logIn({ userId: "bob" });
    await d1.catchUp();
    await phone.logIn();
    await d1.catchUp();
    expect(decodeJwt(String((await phone.sign()).body.signature)).sub).toBe(badgeId);
  });
});

it("a claim is decided by the state of the invitation and of the badge that it replaces, not by what the copy has of them (contract section 16)", async () => {
  const { application, phone, d1, badgeId } = await phoneWithBadge();
  const { token: revoked } = await invite(application);
  await takeStep(application, badgeId, "suspend");
  await d1.catchUp();
  await callServer(application, "PATCH", `/v1/invitation/${revoked}/revoke`);
  expect(outcome(await phone.logIn({ ...ALICE, invitationToken: revoked }))).toBe("410 REVOKED_INVITATION");
  const { token: invitationToken, number: next } = await invite(application);
  expect(outcome(await phone.logIn({ ...ALICE, invitationToken }))).toBe("403 SUSPENDED_BADGE");
  await takeStep(application, badgeId, "resume");
  for (const status of [201, 200]) {
    phone.bookmark = null;
    expect(outcome(await phone.logIn({ ...ALICE, invitationToken }))).toBe(`${status} ${next}`);
  }
});

it.each(["fails", "hangs"] as const)(
  "a copy that %s counts as a miss, which is logged: the primary responds, within a second, or asks the allocator only for what it lacks (contract section 16)",
  async (behaviour) => {
    const { application, d1, phone, badgeId } = await phoneWithBadge();
    const { token: invitationToken, number: claimed } = await invite(application);
    d1.behaviour = behaviour;
    const withoutBookmark = new FarPhone(application, "phone", d1);
    for (const [act, object, expected] of [
      [() => withoutBookmark.logIn(), 0, `200 ${badgeId}`],
      [() => phone.logIn(), 0, `200 ${badgeId}`],
      [() => phone.sign(), 0, "200 signature"],
      [() => phone.logIn({ ...ALICE, invitationToken }), 1, `201 ${claimed}`],
    ] as const) {
      const answer = behaviour === "fails" ? await act() : await waitForCopy(d1, act);
      expect([outcome(answer), answer.trips]).toMatchObject([expected, { copy: 1, primary: 1, object }]);
    }
    const failed = log.lines().filter(({ event }) => event === "replica-read-failed");
    expect(failed).toMatchObject(Array(4).fill({ level: "warn" }));
  },
);

it("a signature is refused with a badge that ended while the copy was slow (contract sections 12 and 16)", async () => {
  const { application, d1, phone, badgeId } = await phoneWithBadge();
  await setEnd(application, badgeId, ahead(10 * SECOND));
  await d1.catchUp();
  d1.behaviour = "hangs";
  const refused = await waitForCopy(
    d1,
    () => phone.sign(),
    async () => {
      moveClock(11 * SECOND);
      d1.behaviour = "responds";
    },
  );
  expect(outcome(refused)).toBe("403 EXPIRED_BADGE");
});

it("a login is refused with a badge that ended while D1 was slow (contract section 12)", async () => {
  const { application, number } = await withBadge();
  await setEnd(application, number, ahead(10 * SECOND));
  const d1 = aroundD1(homeDatabase(), async (statements, send) => {
    const result = await send();
    if (isAbout(statements, "FROM badge")) moveClock(11 * SECOND);
    return result;
  });
  expect(outcome(await requestQuietly(application, "phone", ALICE, bindDatabase(d1)))).toBe("403 EXPIRED_BADGE");
});
