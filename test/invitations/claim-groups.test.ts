import { describe, expect, it, vi } from "vitest";
import { Allocator } from "../../src/worker/allocator/allocator.ts";
import { ENTRY } from "../allocator/support.ts";
import { inParallel, requestQuietly } from "../badges/support.ts";
import { aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { isAbout, statusesOf } from "../support/faults.ts";
import { type Answer, callServer } from "../support/http.ts";
import { until } from "../support/until.ts";
import { type Invitation, invite, listedNumbers, outcome } from "./support/calls.ts";
import { useQuietLog } from "./support/log.ts";
import { RECORDED_EVENTS, readPayload, rowsInSync } from "./support/storage.ts";

useQuietLog();

const claimQuietly = (
  application: TestApplication,
  udid: string,
  userId: string,
  { token: invitationToken }: Invitation,
): Promise<Answer> => requestQuietly(application, udid, { userId, invitationToken });

/** Runs claims that all wait for the first one's write, so that they are one group. @returns the answers */
async function claimTogether(
  application: TestApplication,
  acts: readonly (() => Promise<Answer>)[],
): Promise<{ answers: Answer[]; writes: number }> {
  const decoy = await invite(application);
  const call = vi.spyOn(Allocator.prototype, "call");
  let writes = 0;
  await aroundObjectD1(application, () => async (statements, send) => {
    if (isAbout(statements, ENTRY)) writes++;
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
  it("claims at one moment are written in one batch, each with its own number and its own event", async () => {
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
    const { events } = await rowsInSync(application);
    expect(events.map((event) => readPayload(event).data.invitationId)).toEqual(
      expect.arrayContaining(invitations.map(({ token }) => token)),
    );
    expect(await listedNumbers(application)).toHaveLength(21);
  });

  it("of claims of one invitation by several devices one succeeds, and all others get CLAIMED_INVITATION", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const invitation = await invite(application);
    const { answers } = await claimTogether(
      application,
      ["one", "two", "three"].map((udid) => () => claimQuietly(application, udid, "guest", invitation)),
    );
    expect(answers.map(outcome).toSorted()).toEqual(["201", "409 CLAIMED_INVITATION", "409 CLAIMED_INVITATION"]);
    expect((await rowsInSync(application)).events).toHaveLength(2);
  });

  it("a user who is erased and comes back at one moment has a new badge, whose event still names the user (section 24)", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    await requestQuietly(application, "phone", { userId: "alice" });
    const { answers } = await claimTogether(application, [
      () => requestQuietly(application, "tablet", { userId: "bob", metadata: { os: "iOS" } }),
      () => callServer(application, "PATCH", "/v1/users/alice/erase"),
      async () => {
        await until(() => expect(Allocator.prototype.call).toHaveBeenCalledTimes(3));
        return requestQuietly(application, "phone", { userId: "alice", metadata: { os: "iOS" } });
      },
    ]);
    expect(answers.map(({ status }) => status)).toEqual([201, 200, 201]);
    const { events } = await rowsInSync(application);
    const named = events.map((event) => readPayload(event).data).filter(({ userId }) => userId === "alice");
    expect(named).toMatchObject([{ id: answers[2]?.body.badgeId }]);
  });

  it("two claims of one invitation by one user device both get the number, one of them as new", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const invitation = await invite(application);
    const { answers } = await claimTogether(
      application,
      [1, 2].map(() => () => claimQuietly(application, "phone", "guest", invitation)),
    );
    expect(statusesOf(answers).toSorted()).toEqual([200, 201]);
    expect(answers.map(({ body }) => body.badgeId)).toEqual([String(invitation.number), String(invitation.number)]);
    expect((await rowsInSync(application)).events).toHaveLength(2);
  });

  it("of two claims of two invitations by one user device each replaces the badge before it, and its event says so", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const old = await claimQuietly(application, "phone", "guest", await invite(application));
    const [one, other] = [await invite(application), await invite(application)];
    const { answers } = await claimTogether(
      application,
      [one, other].map((invitation) => () => claimQuietly(application, "phone", "guest", invitation)),
    );
    expect(statusesOf(answers)).toEqual([201, 201]);
    const { badges, events } = await rowsInSync(application);
    const replaced = events.flatMap((event) => readPayload(event).data.replacedBadgeId ?? []);
    const live = badges
      .filter((row) => row.ordinal !== null && row.supersededAt === null && row.userId === "guest")
      .map(({ number }) => number);
    expect(live).toHaveLength(1);
    // Events of one millisecond are in no order.
    const between = [one.number, other.number].filter((number) => !live.includes(number)).map(String);
    expect(new Set(replaced)).toEqual(new Set([old.body.badgeId, ...between]));
    expect(between).toHaveLength(1);
  });
});
