import { describe, expect, it, vi } from "vitest";
import { Allocator } from "../../src/worker/core/allocator.ts";
import { inParallel, requestQuietly } from "../badges/support.ts";
import { aroundAllocators, aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { CASES, expectedStatuses, failing, failingTrips, isAbout, LOST, statusesOf } from "../support/faults.ts";
import { homeDatabase } from "../support/home.ts";
import type { Answer } from "../support/http.ts";
import { until } from "../support/until.ts";
import { type Invitation, invite, listedNumbers, outcome } from "./support/calls.ts";
import { expectConsistent, isLive } from "./support/invariants.ts";
import { useQuietLog } from "./support/log.ts";
import { RECORDED_EVENTS, readPayload } from "./support/storage.ts";

useQuietLog();

/** In every batch that writes a group. */
const WRITE = "INSERT INTO position";

const claimQuietly = (
  application: TestApplication,
  udid: string,
  userId: string,
  { token: invitationToken }: Invitation,
  bindings: Partial<Env> = {},
): Promise<Answer> => requestQuietly(application, udid, { userId, invitationToken }, bindings);

/** Runs claims that all wait for the first one's write, so that they are one group. @returns the answers */
async function claimTogether(
  application: TestApplication,
  acts: readonly (() => Promise<Answer>)[],
): Promise<{ answers: Answer[]; writes: number }> {
  const decoy = await invite(application);
  const call = vi.spyOn(Allocator.prototype, "call");
  let writes = 0;
  await aroundObjectD1(application, () => async (statements, send) => {
    if (isAbout(statements, WRITE)) writes++;
    while (writes === 1 && call.mock.calls.length <= acts.length) await scheduler.wait(1);
    return send();
  });
  const first = claimQuietly(application, "decoy", "decoy", decoy);
  await until(() => expect(writes).toBe(1));
  const answers = await Promise.all(acts.map((act) => act()));
  call.mockRestore();
  expect((await first).status).toBe(201);
  return { answers, writes };
}

describe("claims at one moment (contract section 5)", () => {
  it("are written in one batch, each with its own number and its own event", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const invitations = await inParallel(20, () => invite(application));
    const { answers, writes } = await claimTogether(
      application,
      invitations.map((invitation, place) => () => claimQuietly(application, `phone-${place}`, "guest", invitation)),
    );
    expect(answers.map(({ status, body }) => [status, body.badgeId])).toEqual(
      invitations.map(({ number }) => [201, String(number)]),
    );
    expect(writes).toBe(2);
    const { events } = await expectConsistent(application);
    expect(events.map((event) => readPayload(event).data.invitationId)).toEqual(
      expect.arrayContaining(invitations.map(({ token }) => token)),
    );
    expect(await listedNumbers(application)).toHaveLength(21);
  });

  it("of one invitation by several devices: one succeeds, all others get CLAIMED_INVITATION", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const invitation = await invite(application);
    const { answers } = await claimTogether(
      application,
      ["one", "two", "three"].map((udid) => () => claimQuietly(application, udid, "guest", invitation)),
    );
    expect(answers.map(outcome).toSorted()).toEqual(["201", "409 CLAIMED_INVITATION", "409 CLAIMED_INVITATION"]);
    expect((await expectConsistent(application)).events).toHaveLength(2);
  });

  it("of one invitation by one user device, twice: both get the number, one of them as new", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const invitation = await invite(application);
    const { answers } = await claimTogether(
      application,
      [1, 2].map(() => () => claimQuietly(application, "phone", "guest", invitation)),
    );
    expect(statusesOf(answers).toSorted()).toEqual([200, 201]);
    expect(answers.map(({ body }) => body.badgeId)).toEqual([String(invitation.number), String(invitation.number)]);
    expect((await expectConsistent(application)).events).toHaveLength(2);
  });

  it("of two invitations by one user device: each replaces the badge before it, and its event says so", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const old = await claimQuietly(application, "phone", "guest", await invite(application));
    const [one, other] = [await invite(application), await invite(application)];
    const { answers } = await claimTogether(
      application,
      [one, other].map((invitation) => () => claimQuietly(application, "phone", "guest", invitation)),
    );
    expect(statusesOf(answers)).toEqual([201, 201]);
    const { badges, events } = await expectConsistent(application);
    const replaced = events.flatMap((event) => readPayload(event).data.replacedBadgeId ?? []);
    const live = badges.filter((row) => isLive(row) && row.userId === "guest").map(({ number }) => number);
    expect(live).toHaveLength(1);
    // Events of one millisecond are in no order.
    const between = [one.number, other.number].filter((number) => !live.includes(number)).map(String);
    expect(new Set(replaced)).toEqual(new Set([old.body.badgeId, ...between]));
    expect(between).toHaveLength(1);
  });
});

describe("a claim that fails half-way, tried again by the client (contract sections 1 and 5)", () => {
  /** What a phone does: tries until it is answered, and once more at its next start. */
  async function claimUntilAnswered(application: TestApplication, invitation: Invitation, bindings: Partial<Env> = {}) {
    const answers: Answer[] = [];
    const ask = async () => answers.push(await claimQuietly(application, "phone", "guest", invitation, bindings));
    while (!answers.some(({ status }) => status < 300) && answers.length < 5) await ask();
    await ask();
    return { answers, number: invitation.number };
  }

  /** The number of the invitation and no other, told by one event. */
  async function expectClaimed(
    application: TestApplication,
    { answers, number }: { answers: readonly Answer[]; number: number },
  ): Promise<void> {
    for (const { status, body } of answers) if (status < 300) expect(body.badgeId).toBe(String(number));
    expect(await listedNumbers(application)).toEqual([number]);
    expect((await expectConsistent(application)).events).toHaveLength(1);
  }

  it.each(CASES)("D1 fails $moment the object writes the claim: $kind.name", async ({ moment, kind }) => {
    const application = await createApplication(RECORDED_EVENTS);
    const invitation = await invite(application);
    await aroundObjectD1(application, () => failingTrips(WRITE, kind, moment));
    const claimed = await claimUntilAnswered(application, invitation);
    // The object repeats what may have happened while somebody waits. What D1 refuses for good has not happened.
    const isRefused = moment === "before" && kind.error !== LOST;
    expect(statusesOf(claimed.answers)).toEqual(isRefused ? [503, 201, 200] : [201, 200]);
    await expectClaimed(application, claimed);
  });

  it.each(CASES)("the object is lost $moment it did its work: $kind.name", async ({ moment, kind }) => {
    const application = await createApplication(RECORDED_EVENTS);
    const fail = failing(kind, moment);
    const ALLOCATOR = aroundAllocators((method, call) => (method === "call" ? fail(call) : call()));
    const claimed = await claimUntilAnswered(application, await invite(application), { ALLOCATOR });
    expect(statusesOf(claimed.answers)).toEqual(expectedStatuses(kind, moment === "after"));
    await expectClaimed(application, claimed);
  });

  it.each([
    { moment: "before D1 has the claim", statuses: [503, 201, 200] },
    { moment: "once D1 has the claim", statuses: [503, 200, 200] },
  ])("the object dies $moment", async ({ moment, statuses }) => {
    const application = await createApplication(RECORDED_EVENTS);
    const invitation = await invite(application);
    await aroundObjectD1(application, (state) => async (trip, send) => {
      if (!isAbout(trip, WRITE)) return send();
      if (moment === "once D1 has the claim") await send();
      state.abort("the object dies");
      return send();
    });
    const claimed = await claimUntilAnswered(application, invitation);
    expect(statusesOf(claimed.answers)).toEqual(statuses);
    await expectClaimed(application, claimed);
  });

  it("writes nothing at all when D1 cannot record the event", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const invitation = await invite(application);
    await homeDatabase()
      .prepare(
        `CREATE TRIGGER refuse_events BEFORE INSERT ON webhook_event WHEN NEW.application_id = '${application.id}'
       BEGIN SELECT RAISE(ABORT, 'refused'); END`,
      )
      .run();
    expect((await claimQuietly(application, "phone", "guest", invitation)).status).toBe(500);
    const { badges, invitations } = await expectConsistent(application);
    expect(badges).toMatchObject([{ number: invitation.number, device: null, position: null }]);
    expect(invitations).toMatchObject([{ state: "pending" }]);
    await homeDatabase().prepare("DROP TRIGGER refuse_events").run();
    expect((await claimQuietly(application, "phone", "guest", invitation)).status).toBe(201);
  });
});
