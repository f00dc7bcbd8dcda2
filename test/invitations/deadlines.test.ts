import { afterEach, describe, expect, it } from "vitest";
import { sweep } from "../support/sweep.ts";
import { requestQuietly } from "../badges/support.ts";
import { aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { testContext } from "../support/context.ts";
import { aroundD1 } from "../support/d1.ts";
import { HeldTrips } from "../support/held.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { type Answer, serverHeaders } from "../support/http.ts";
import { isSettled, StandingTimers } from "../support/timers.ts";
import { claim, type Invitation, invite, listedNumbers, outcome, requestInvitation, revoke } from "./support/calls.ts";
import { ahead, DAY } from "./support/clock.ts";
import { expectConsistent } from "./support/invariants.ts";
import { useQuietLog } from "./support/log.ts";
import { RECORDED_EVENTS, readInvitation, readRows } from "./support/storage.ts";

useQuietLog();

let timers: StandingTimers;

afterEach(() => {
  timers.stop();
});

/** An application and one invitation, from which on time stands still. */
async function begin(): Promise<{ application: TestApplication; invitation: Invitation }> {
  const application = await createApplication({ size: 5, ...RECORDED_EVENTS });
  const invitation = await invite(application, ahead(DAY));
  timers = new StandingTimers();
  return { application, invitation };
}

/** A call whose trip to D1 hangs until the deadline. */
async function expectTimeout(call: Promise<Answer>, held: HeldTrips): Promise<void> {
  await timers.pass(9_999, () => held.count === 1);
  expect(await isSettled(call)).toBe(false);
  await timers.pass(1);
  expect(outcome(await call)).toBe("503 UNAVAILABLE");
  held.stop();
}

describe("a claim that D1 executes after the deadline (contract sections 2, 5 and 11)", () => {
  async function claimLate() {
    const { application, invitation } = await begin();
    const held = new HeldTrips("UPDATE invitation");
    await aroundObjectD1(application, () => held.around);
    await expectTimeout(claim(application, "phone", "alice", invitation.token), held);
    return { application, invitation, held };
  }

  it.each([
    { when: "before", statuses: ["200", "200"] },
    { when: "after", statuses: ["201", "200"] },
  ])("comes $when the retry: one badge and one event, of the invitation's number", async ({ when, statuses }) => {
    const { application, invitation, held } = await claimLate();
    if (when === "before") await held.letThrough();
    const answers = [await claim(application, "phone", "alice", invitation.token)];
    await held.letThrough();
    answers.push(await claim(application, "phone", "alice", invitation.token));
    expect(answers.map(outcome)).toEqual(statuses);
    expect(answers.map(({ body }) => body.badgeId)).toEqual([String(invitation.number), String(invitation.number)]);
    expect(await listedNumbers(application)).toEqual([invitation.number]);
    expect((await expectConsistent(application)).events).toHaveLength(1);
  });

  it("does not take the number from a device that has claimed it since", async () => {
    const { application, invitation, held } = await claimLate();
    expect(outcome(await claim(application, "other", "bob", invitation.token))).toBe("201");
    await held.letThrough();
    expect(outcome(await claim(application, "phone", "alice", invitation.token))).toBe("409 CLAIMED_INVITATION");
    const { badges, events } = await expectConsistent(application);
    expect(badges).toMatchObject([{ number: invitation.number, userId: "bob" }]);
    expect(events).toHaveLength(1);
  });

  it("does not restore an invitation that was revoked since and whose number has another owner", async () => {
    const { application, invitation, held } = await claimLate();
    expect(outcome(await revoke(application, invitation.token))).toBe("200");
    const others = await Promise.all(
      [1, 2, 3, 4, 5].map((index) => requestQuietly(application, `other ${index}`, { userId: "bob" })),
    );
    expect(others.map(({ body }) => Number(body.badgeId))).toContain(invitation.number);
    await held.letThrough();
    expect(outcome(await claim(application, "phone", "alice", invitation.token))).toBe("410 REVOKED_INVITATION");
    const { badges, events } = await expectConsistent(application);
    expect(badges.map(({ userId }) => userId)).toEqual(Array.from({ length: 5 }, () => "bob"));
    expect(events).toHaveLength(5);
  });
});

describe("a revocation that D1 executes after the deadline (contract sections 5 and 11)", () => {
  async function revokeLate() {
    const { application, invitation } = await begin();
    const held = new HeldTrips("UPDATE invitation");
    const request = new Request(`https://badges.example/v1/invitation/${invitation.token}/revoke`, {
      method: "PATCH",
      headers: serverHeaders(application),
    });
    await expectTimeout(callWith({ ...bindDatabase(aroundD1(homeDatabase(), held.around)) }, request), held);
    return { application, invitation, held };
  }

  it.each(["before", "after"])("comes %s the retry: it ends once and frees the number once", async (when) => {
    const { application, invitation, held } = await revokeLate();
    if (when === "before") await held.letThrough();
    const answers = [await revoke(application, invitation.token)];
    await held.letThrough();
    answers.push(await revoke(application, invitation.token));
    expect(answers.map(outcome)).toEqual(["200", "200"]);
    expect(answers[1]?.body).toEqual(answers[0]?.body);
    expect((await expectConsistent(application)).ledger.free).toEqual([invitation.number]);
  });

  it("frees the number in the next sweep when there is no other request", async () => {
    const { application, invitation, held } = await revokeLate();
    await held.letThrough();
    await sweep([testContext().context]);
    expect(outcome(await claim(application, "phone", "alice", invitation.token))).toBe("410 REVOKED_INVITATION");
    expect((await expectConsistent(application)).ledger.free).toEqual([invitation.number]);
  });

  it("does not end a badge that has been claimed since", async () => {
    const { application, invitation, held } = await revokeLate();
    expect(outcome(await claim(application, "phone", "alice", invitation.token))).toBe("201");
    await held.letThrough();
    expect(outcome(await revoke(application, invitation.token))).toBe("409 CLAIMED_INVITATION");
    expect(await listedNumbers(application)).toEqual([invitation.number]);
    await expectConsistent(application);
  });

  it("does not end the new owner's badge or reservation after the number was released", async () => {
    const { application, invitation, held } = await revokeLate();
    await revoke(application, invitation.token);
    const others: number[] = [];
    for (const index of [1, 2, 3, 4, 5]) {
      others.push(Number((await requestQuietly(application, `other ${index}`, { userId: "bob" })).body.badgeId));
    }
    expect(others).toContain(invitation.number);
    await held.letThrough();
    expect(await listedNumbers(application)).toEqual(others);
    await expectConsistent(application);
  });
});

describe("a reservation that D1 executes after the deadline (contract sections 5 and 11)", () => {
  it.each(["before", "after"])("%s the number got another owner has no lasting effect", async (when) => {
    const application = await createApplication({ size: 1, ...RECORDED_EVENTS });
    timers = new StandingTimers();
    const held = new HeldTrips("INSERT INTO badge");
    await aroundObjectD1(application, () => held.around);
    await expectTimeout(requestInvitation(application, { expiresAt: ahead(DAY) }), held);
    if (when === "before") await held.letThrough();
    await timers.pass(300_000);
    const told = await invite(application, ahead(DAY));
    expect(told.number).toBe(application.firstNumber);
    await held.letThrough();
    expect(await readInvitation(told.token)).toMatchObject({ state: "pending", number: told.number });
    expect(outcome(await claim(application, "phone", "alice", told.token))).toBe("201");
    const { invitations } = await readRows(application);
    expect(invitations.filter(({ state }) => state !== "claimed").every(({ state }) => state === "revoked")).toBe(true);
    expect((await expectConsistent(application)).badges).toMatchObject([{ number: told.number, userId: "alice" }]);
  });

  it("is not reported when the Worker has given up, and its number is free again", async () => {
    const application = await createApplication({ size: 1, ...RECORDED_EVENTS });
    timers = new StandingTimers();
    // Slow, but within the object's own deadline.
    let isSlow = true;
    await aroundObjectD1(application, () => async (_, send) => {
      const sent = await send();
      if (isSlow) await new Promise<void>((resolve) => void setTimeout(resolve, 9_000));
      return sent;
    });
    const refused = requestInvitation(application, { expiresAt: ahead(DAY) });
    await timers.pass(9_000, () => timers.pending === 3);
    isSlow = false;
    expect(outcome(await refused)).toBe("503 UNAVAILABLE");
    expect((await readRows(application)).invitations).toMatchObject([{ state: "pending" }]);
    await timers.pass(300_000);
    expect((await invite(application, ahead(DAY))).number).toBe(application.firstNumber);
  });
});
