import { afterEach, describe, expect, it } from "vitest";
import { aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { HeldTrips } from "../support/held.ts";
import type { Answer } from "../support/http.ts";
import { StandingTimers } from "../support/timers.ts";
import { claim, type Invitation, invite, listedNumbers, outcome, requestInvitation, revoke } from "./support/calls.ts";
import { ahead, DAY } from "./support/clock.ts";
import { expectConsistent } from "./support/invariants.ts";
import { useQuietLog } from "./support/log.ts";
import { RECORDED_EVENTS } from "./support/storage.ts";

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

/** Calls that change something, each of which D1 executes only after its caller was told 503. */
async function callLate(act: (application: TestApplication, invitation: Invitation) => Promise<Answer>) {
  const { application, invitation } = await begin();
  const held = new HeldTrips("INSERT INTO position");
  await aroundObjectD1(application, () => held.around);
  const late = act(application, invitation);
  await timers.pass(11_000, () => held.count === 1);
  expect(outcome(await late)).toBe("503 UNAVAILABLE");
  held.stop();
  return { application, invitation, held };
}

/** D1 executes the late batches, or refuses them because their turn is over. */
const letThrough = (held: HeldTrips): Promise<unknown> =>
  held.letThrough().catch((error) => expect(String(error)).toContain("position.sequence"));

describe("a call that was answered 503 had happened by then, or never will (contract section 21)", () => {
  it.each(["before", "after"])("a claim that D1 gets %s its repetition gives one badge and one event", async (when) => {
    const { application, invitation, held } = await callLate((of, { token }) => claim(of, "phone", "alice", token));
    if (when === "before") await letThrough(held);
    const answers = [await claim(application, "phone", "alice", invitation.token)];
    await letThrough(held);
    answers.push(await claim(application, "phone", "alice", invitation.token));
    expect(answers.map(({ body }) => body.badgeId)).toEqual([String(invitation.number), String(invitation.number)]);
    expect(await listedNumbers(application)).toEqual([invitation.number]);
    expect((await expectConsistent(application)).events).toHaveLength(1);
  });

  it("a late claim does not take the number from a device that has claimed it since", async () => {
    const { application, invitation, held } = await callLate((of, { token }) => claim(of, "phone", "alice", token));
    expect(outcome(await claim(application, "other", "bob", invitation.token))).toBe("201");
    await letThrough(held);
    expect(outcome(await claim(application, "phone", "alice", invitation.token))).toBe("409 CLAIMED_INVITATION");
    const { badges, events } = await expectConsistent(application);
    expect(badges).toMatchObject([{ number: invitation.number, userId: "bob" }]);
    expect(events).toHaveLength(1);
  });

  it("a late claim does not restore an invitation that was revoked since", async () => {
    const { application, invitation, held } = await callLate((of, { token }) => claim(of, "phone", "alice", token));
    expect(outcome(await revoke(application, invitation.token))).toBe("200");
    await letThrough(held);
    expect(outcome(await claim(application, "phone", "alice", invitation.token))).toBe("410 REVOKED_INVITATION");
    expect((await expectConsistent(application)).freed).toEqual([invitation.number]);
  });

  it.each(["before", "after"])("a revocation that D1 gets %s its repetition frees the number once", async (when) => {
    const { application, invitation, held } = await callLate((of, { token }) => revoke(of, token));
    if (when === "before") await letThrough(held);
    const answers = [await revoke(application, invitation.token)];
    await letThrough(held);
    answers.push(await revoke(application, invitation.token));
    expect(answers.map(outcome)).toEqual(["200", "200"]);
    expect(answers[1]?.body).toEqual(answers[0]?.body);
    expect((await expectConsistent(application)).freed).toEqual([invitation.number]);
  });

  it("a late revocation does not end a badge that has been claimed since", async () => {
    const { application, invitation, held } = await callLate((of, { token }) => revoke(of, token));
    expect(outcome(await claim(application, "phone", "alice", invitation.token))).toBe("201");
    await letThrough(held);
    expect(outcome(await revoke(application, invitation.token))).toBe("409 CLAIMED_INVITATION");
    expect(await listedNumbers(application)).toEqual([invitation.number]);
    await expectConsistent(application);
  });

  it("a reservation that nobody was told of blocks no number for ever", async () => {
    const { application, held } = await callLate((of) => requestInvitation(of, { expiresAt: ahead(DAY) }));
    await letThrough(held);
    await timers.pass(300_000);
    for (let count = 1; count < 5; count++) await invite(application, ahead(DAY));
    expect(outcome(await requestInvitation(application, { expiresAt: ahead(DAY) }))).toBe("503 NUMBERS_EXHAUSTED");
    await expectConsistent(application);
  });
});
