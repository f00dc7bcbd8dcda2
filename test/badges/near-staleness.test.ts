import { decodeJwt } from "jose";
import { describe, expect, it, onTestFinished } from "vitest";
import { newPhone, rebind } from "../bound/support.ts";
import { invite } from "../http/support/invitations.ts";
import { moveClock, SECOND, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { createApplication } from "../support/application.ts";
import { UNLIMITED } from "../support/bindings.ts";
import { FarD1 } from "../support/copy.ts";
import { bindDatabase, runSql, testHome } from "../support/home.ts";
import { callServer, requestBadge } from "../support/http.ts";
import { isSettled, StandingTimers } from "../support/timers.ts";
import { block, issueTo, setEnd, takeStep } from "./life-support.ts";
import { ALICE, BADGE, FarPhone, outcome, phoneWithBadge, SIGNED, tick } from "./near-support.ts";

const log = useQuietLog();
useStandingClock();

const BOTH = [
  { name: "login", act: (phone: FarPhone) => phone.logIn() },
  { name: "signature", act: (phone: FarPhone) => phone.sign() },
];

describe("a login near a copy that lacks the phone's badge (contract sections 7 and 16)", () => {
  it.each([true, false])(
    "a phone with a badge is not limited by its address; copy up to date: %s",
    async (isUpToDate) => {
      const application = await createApplication();
      const d1 = await FarD1.create();
      const phone = await newPhone(application, "phone");
      // The response, which has the bookmark, is lost.
      const issued = await phone.logIn();
      if (isUpToDate) await d1.catchUp();
      const USED_UP: RateLimit = { limit: async () => ({ success: false }) };
      const bindings = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: USED_UP, ...bindDatabase(d1.binding) };
      expect(outcome(await phone.logInTo(bindings))).toBe(`200 ${issued.body.badgeId}`);
      const stranger = await newPhone(application, "another phone");
      expect(outcome(await stranger.logInTo(bindings))).toBe("429 RATE_LIMITED");
    },
  );

  it("a phone that repeats its claim is not limited by its address, a stranger with its token is", async () => {
    const application = await createApplication();
    const d1 = await FarD1.create();
    const { id: invitationToken, badgeId } = await invite(application);
    const phone = await newPhone(application, "phone");
    // The response, which has the bookmark, is lost.
    expect((await phone.logIn("alice", { invitationToken })).status).toBe(201);
    const USED_UP: RateLimit = { limit: async () => ({ success: false }) };
    const bindings = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: USED_UP, ...bindDatabase(d1.binding) };
    const more = { invitationToken };
    expect(outcome(await phone.logInTo(bindings, { more }))).toBe(`200 ${badgeId}`);
    const stranger = await newPhone(application, "another phone");
    expect(outcome(await stranger.logInTo(bindings, { more }))).toBe("429 RATE_LIMITED");
  });
});

describe("a revocation is obeyed everywhere within 90 seconds (contract section 16)", () => {
  it.each(BOTH)(
    "by a $name: at once without a bookmark, and with any beside a copy that stopped before it",
    async ({ act }) => {
      const { application, badgeId, phone } = await phoneWithBadge();
      const bookmarks = [phone.bookmark, `${testHome()}.00000000-00000000-00000000-${"0".repeat(32)}`];
      expect((await takeStep(application, badgeId, "revoke")).status).toBe(200);
      const outcomes = async () => {
        const all = [];
        for (const bookmark of bookmarks) {
          phone.bookmark = bookmark;
          all.push((await act(phone)).body.error);
        }
        return all;
      };
      phone.bookmark = null;
      expect(outcome(await act(phone))).toBe("403 REVOKED_BADGE");
      moveClock(80 * SECOND);
      expect(await outcomes()).toEqual([undefined, undefined]);
      moveClock(10 * SECOND);
      expect(await outcomes()).toEqual(["REVOKED_BADGE", "REVOKED_BADGE"]);
    },
  );

  it.each([
    ["never had a mark of time", () => runSql("DELETE FROM heartbeat")],
    ["has a mark of 90 seconds ago", () => runSql("UPDATE heartbeat SET ticked_at = ticked_at - 90000")],
    ["has a mark of an hour ahead", () => runSql("UPDATE heartbeat SET ticked_at = ticked_at + 3600000")],
  ])("a revocation takes effect at once if the copy %s", async (_, change) => {
    const { application, phone, d1, badgeId } = await phoneWithBadge();
    await change();
    await d1.catchUp();
    await takeStep(application, badgeId, "revoke");
    for (const { act } of BOTH) expect(outcome(await act(phone))).toBe("403 REVOKED_BADGE");
  });

  /** For each of both calls: whether a copy with a mark of that time accepts it, so that nothing is asked of the primary. */
  const isRecentWith = async (millisecondsAhead: number) => {
    const { phone, d1 } = await phoneWithBadge();
    await runSql("UPDATE heartbeat SET ticked_at = ticked_at + ?", millisecondsAhead);
    await d1.catchUp();
    const { bookmark } = phone;
    const answers = [];
    for (const { act } of BOTH) {
      // With the bookmark that the primary gives, the copy would not respond.
      phone.bookmark = bookmark;
      answers.push(await act(phone));
    }
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    return answers.map(({ trips }) => trips.far === 0);
  };

  it.each([
    ["four seconds ahead is recent: clocks differ", 4000, true],
    ["six seconds ahead counts as none: clocks differ by five at most", 6000, false],
    ["84 seconds old is recent", -84_000, true],
    ["85 seconds old counts as none: with five for clocks that differ, that makes 90", -85_000, false],
  ])("a mark %s, so that a revocation is obeyed within 90 seconds", async (_, millisecondsAhead, isRecent) => {
    expect(await isRecentWith(millisecondsAhead)).toEqual([isRecent, isRecent]);
  });

  it("the next heartbeat makes the copy recent again", async () => {
    const { phone, d1 } = await phoneWithBadge();
    moveClock(90 * SECOND);
    expect((await phone.logIn()).trips.far).toBeGreaterThan(0);
    await tick();
    await d1.catchUp();
    expect((await phone.logIn()).trips.far).toBe(0);
  });
});

describe("what a copy does not grant is decided at the primary (contract section 16)", () => {
  it.each(BOTH)("a $name with a badge that the copy has suspended, and the primary resumed", async ({ act }) => {
    const { application, phone, d1, badgeId } = await phoneWithBadge();
    await takeStep(application, badgeId, "suspend");
    await d1.catchUp();
    await takeStep(application, badgeId, "resume");
    expect((await act(phone)).status).toBe(200);
  });

  it.each(BOTH)("a $name with a badge that has ended by the clock, and got a later end", async ({ act }) => {
    const { application, phone, d1, badgeId } = await phoneWithBadge();
    await setEnd(application, badgeId, new Date(Date.now() + 5000).toISOString());
    await d1.catchUp();
    await setEnd(application, badgeId, null);
    moveClock(10 * SECOND);
    expect((await act(phone)).status).toBe(200);
  });

  it("a login with a badge that the copy does not have yet succeeds, even when no number is left", async () => {
    const { application, d1 } = await phoneWithBadge({ size: 2 });
    // The allocator knows it as the invitation's, so it looks for another number.
    const { id: invitationToken, badgeId } = await invite(application);
    expect((await requestBadge(application, "other", { ...ALICE, invitationToken })).status).toBe(201);
    const other = new FarPhone(application, "other", d1);
    expect(outcome(await other.logIn())).toBe(`200 ${badgeId}`);
    expect(outcome(await other.sign())).toBe("200 signature");
    const third = new FarPhone(application, "third", d1);
    expect(outcome(await third.logIn())).toBe("503 NUMBERS_EXHAUSTED");
  });

  it("a blocked user's revoked badge that the copy does not have gets the refusal of its state, not of the block", async () => {
    const { application, d1 } = await phoneWithBadge();
    await issueTo(application, "other", "bob");
    await block(application, "bob");
    const other = new FarPhone(application, "other", d1);
    expect(outcome(await other.logIn({ userId: "bob" }))).toBe("403 REVOKED_BADGE");
    const another = new FarPhone(application, "another", d1);
    expect(outcome(await another.logIn({ userId: "bob" }))).toBe("403 BLOCKED_USER");
  });

  it("a login with a proof binds an unbound badge, which a rebind that the copy lacks has allowed (section 15)", async () => {
    const { application, phone, badgeId } = await phoneWithBadge();
    await rebind(application, badgeId);
    const owner = await newPhone(application, phone.udid);
    const { body } = await phone.call(BADGE, ALICE, { DPoP: await owner.prove(BADGE, JSON.stringify(ALICE)) });
    expect(body).toEqual({ badgeId, keyThumbprint: await owner.thumbprint() });
  });

  it("a login that makes another badge the device's current one is decided at the primary", async () => {
    const { phone, d1 } = await phoneWithBadge();
    await phone.logIn({ userId: "bob" });
    await d1.catchUp();
    await phone.logIn();
    await d1.catchUp();
    const { body } = await phone.sign();
    expect(decodeJwt(String(body.signature)).sub).toBe((await phone.logIn()).body.badgeId);
  });
});

describe("a call that gets no new badge uses up no number (contract section 5)", () => {
  it("a guest's phone that asks repeatedly before the copy has its badge uses up no number", async () => {
    const application = await createApplication({ size: 3, reuseAfterSeconds: 3600 });
    const { id } = await invite(application);
    const phone = new FarPhone(application, "phone", await FarD1.create());
    const { body } = await phone.logIn({ ...ALICE, invitationToken: id });
    for (let call = 0; call < 5; call++) {
      phone.bookmark = null;
      const again = await phone.logIn();
      expect([again.status, again.body.badgeId, again.trips.object]).toEqual([200, body.badgeId, 1]);
    }
    for (const udid of ["second", "third"]) await issueTo(application, udid, "alice");
    expect((await requestBadge(application, "one too many", ALICE)).status).toBe(503);
  });
});

describe("a claim whose first look goes to a copy is decided by its write (contract section 16)", () => {
  const invitedPhone = async () => {
    const stage = await phoneWithBadge();
    const invitation = await invite(stage.application);
    await stage.d1.catchUp();
    const claim = (phone = stage.phone, body: object = ALICE) =>
      phone.logIn({ ...body, invitationToken: invitation.id });
    const revoke = () => callServer(stage.application, "PATCH", `/v1/invitation/${invitation.id}/revoke`);
    return { ...stage, invitation, claim, revoke };
  };

  it("an invitation that the copy does not have is claimed", async () => {
    const { phone, application } = await phoneWithBadge();
    const { id, badgeId } = await invite(application);
    phone.bookmark = null;
    expect(outcome(await phone.logIn({ ...ALICE, invitationToken: id }))).toBe(`201 ${badgeId}`);
  });

  it.each([
    ["the invitation was revoked", "410 REVOKED_INVITATION", ({ revoke }) => revoke()],
    ["the user was blocked", "403 BLOCKED_USER", ({ application }) => block(application, "alice")],
    [
      "its badge was suspended",
      "403 SUSPENDED_BADGE",
      ({ application, badgeId }) => takeStep(application, badgeId, "suspend"),
    ],
    [
      "its badge was revoked",
      "403 REVOKED_BADGE",
      ({ application, badgeId }) => takeStep(application, badgeId, "revoke"),
    ],
    [
      "another device was faster",
      "409 CLAIMED_INVITATION",
      ({ application, d1, claim }) => claim(new FarPhone(application, "faster", d1), { userId: "bob" }),
    ],
  ] satisfies [string, string, (stage: Awaited<ReturnType<typeof invitedPhone>>) => Promise<unknown>][])(
    "a claim is refused when %s, which the copy has not heard of: %s",
    async (_, refusal, change) => {
      const stage = await invitedPhone();
      await change(stage);
      expect(outcome(await stage.claim())).toBe(refusal);
    },
  );

  it("a claim supersedes a badge that is suspended in the copy, but resumed at the primary", async () => {
    const { application, d1, badgeId, claim, invitation } = await invitedPhone();
    await takeStep(application, badgeId, "suspend");
    await d1.catchUp();
    await takeStep(application, badgeId, "resume");
    expect(outcome(await claim())).toBe(`201 ${invitation.badgeId}`);
  });

  it("a repeated claim that the copy does not have yet gets the badge that it created", async () => {
    const { claim, invitation } = await invitedPhone();
    expect(outcome(await claim())).toBe(`201 ${invitation.badgeId}`);
    expect(outcome(await claim())).toBe(`200 ${invitation.badgeId}`);
  });
});

describe("a copy that is out of order counts as a miss (contract section 16)", () => {
  it.each([
    { behaviour: "fails", when: "at once", milliseconds: 0 },
    { behaviour: "hangs", when: "after a second", milliseconds: 1000 },
  ] as const)("when it $behaviour, the primary responds $when", async ({ behaviour, milliseconds }) => {
    const { phone, d1, application } = await phoneWithBadge();
    const { id } = await invite(application);
    d1.behaviour = behaviour;
    const timers = new StandingTimers();
    onTestFinished(() => timers.stop());
    const acts = [() => phone.logIn(), () => phone.sign(), () => phone.logIn({ ...ALICE, invitationToken: id })];
    for (const act of acts) {
      const before = d1.copyTrips;
      const answer = act();
      if (milliseconds > 0) {
        await timers.pass(milliseconds - 1, () => d1.copyTrips > before);
        expect(await isSettled(answer)).toBe(false);
        await timers.pass(1);
      }
      const { status, trips } = await answer;
      expect([status < 300, trips.copy, trips.primary]).toEqual([true, 1, 1]);
    }
  });

  it("the allocator is asked for a new badge only after the primary has none", async () => {
    const { d1, application, badgeId } = await phoneWithBadge();
    d1.behaviour = "fails";
    const again = new FarPhone(application, "phone", d1);
    const { body, trips } = await again.logIn();
    expect([body.badgeId, trips]).toEqual([badgeId, { copy: 1, primary: 1, object: 0, far: 2 }]);
  });

  it("a copy that is out of order is logged", async () => {
    const { phone, d1 } = await phoneWithBadge();
    d1.behaviour = "fails";
    await phone.sign(SIGNED);
    const failed = log.lines().filter(({ event }) => event === "replica-read-failed");
    expect(failed).toMatchObject([{ level: "warn" }]);
  });
});
