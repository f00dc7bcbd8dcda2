import { decodeJwt } from "jose";
import { describe, expect, it, vi } from "vitest";
import { Allocator } from "../../src/worker/allocator/allocator.ts";
import { ENTRY, expectInSync } from "../allocator/support.ts";
import { signOn } from "../badges/life-support.ts";
import { requestQuietly } from "../badges/support.ts";
import { times } from "../http/support/draft.ts";
import { aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { HOUR, moveClock, useStandingClock } from "../support/clock.ts";
import { isAbout } from "../support/faults.ts";
import { outcome, requestBadge } from "../support/http.ts";
import { claim, invite, listedNumbers } from "../support/invitations.ts";
import { RECORDED_EVENTS, readRows } from "../support/rows.ts";
import { until } from "../support/until.ts";

useStandingClock();

it("presenting an invitation token gets 201 with the reserved number first, then always 200 with the same number (contract section 2)", async () => {
  const application = await createApplication();
  const { token, number } = await invite(application);
  // A refused request consumes nothing.
  for (const body of [{ userId: "alice", metadata: { os: 1 } }, {}, { userId: "a".repeat(256) }]) {
    expect((await requestBadge(application, "device", { ...body, invitationToken: token })).status).toBe(422);
  }
  const first = await claim(application, "device", "alice", token);
  expect(first).toMatchObject({ status: 201 });
  expect(first.body).toEqual({ badgeId: String(number), publicKey: expect.any(String) });
  const again = await claim(application, "device", "alice", token);
  expect(again).toMatchObject({ status: 200, body: { badgeId: String(number) } });
  expect(again.body).not.toHaveProperty("publicKey");
  moveClock(2 * HOUR);
  expect(await claim(application, "device", "alice", token)).toMatchObject({ status: 200, body: again.body });
  // A token that is null, empty or blank counts as none.
  for (const none of [null, "", "  "]) {
    expect(await claim(application, "device", "alice", none)).toMatchObject({ status: 200, body: again.body });
  }
  expect(await listedNumbers(application)).toEqual([number]);
});

describe("a claim by a user device that has a badge (contract section 2)", () => {
  async function signedNumber(application: TestApplication, udid: string): Promise<unknown> {
    const { body } = await signOn(application, udid);
    return Number(decodeJwt(String(body.signature)).sub);
  }

  it("a claim replaces the old number with the invitation's and retires it permanently", async () => {
    const size = 5;
    const application = await createApplication({ size });
    const old = Number((await requestBadge(application, "device", { userId: "alice" })).body.badgeId);
    const { token, number } = await invite(application);
    expect(await signedNumber(application, "device")).toBe(old);
    expect(outcome(await claim(application, "device", "alice", token))).toBe("201");

    expect(await listedNumbers(application)).toEqual([number]);
    expect(await signedNumber(application, "device")).toBe(number);
    const issued: number[] = [];
    const second = await invite(application);
    for (let device = 3; device < size; device++) {
      const { body } = await requestBadge(application, `device ${device}`, { userId: "bob" });
      issued.push(Number(body.badgeId));
    }
    expect(issued).not.toContain(old);
    const further = await requestBadge(application, "one too many", { userId: "bob" });
    expect(outcome(further)).toBe("503 NUMBERS_EXHAUSTED");
    // The first token returns the present badge.
    expect(outcome(await claim(application, "device", "alice", second.token))).toBe("201");
    const present = { status: 200, body: { badgeId: String(second.number) } };
    expect(await claim(application, "device", "alice", token)).toMatchObject(present);
    expect(await listedNumbers(application)).toEqual([...issued, second.number]);
  });
});

it("of claims at one moment, each invitation's number goes to one device, the others get CLAIMED_INVITATION, and each badge that a further claim replaces is in its event (contract section 5)", async () => {
  const application = await createApplication(RECORDED_EVENTS);
  const old = await requestQuietly(application, "twice", { userId: "guest" });
  const invitations = await Promise.all(times(4).map(() => invite(application)));
  const [shared, repeated, next, last] = invitations;
  const claims = [
    ...["a", "b", "c"].map((udid) => [udid, shared] as const),
    ...[1, 2].map(() => ["repeating", repeated] as const),
    ...[["twice", next] as const, ["twice", last] as const],
  ];
  const asked = vi.spyOn(Allocator.prototype, "call");
  let writes = 0;
  await aroundObjectD1(application, () => async (statements, send) => {
    if (isAbout(statements, ENTRY)) writes++;
    // All claims wait for the first call's write: they are decided together.
    while (writes === 1 && asked.mock.calls.length <= claims.length) await scheduler.wait(1);
    return send();
  });
  const first = requestQuietly(application, "first", { userId: "first" });
  await until(() => expect(writes).toBe(1));
  const answers = await Promise.all(
    claims.map(([udid, invitation]) =>
      requestQuietly(application, udid, { userId: "guest", invitationToken: invitation?.token }),
    ),
  );
  expect([(await first).status, writes]).toEqual([201, 2]);
  asked.mockRestore();
  const outcomes = answers.map(outcome);
  const conflict = "409 CLAIMED_INVITATION";
  expect(outcomes.slice(0, 3).toSorted()).toEqual(["201", conflict, conflict]);
  expect(outcomes.slice(3, 5).toSorted()).toEqual(["200", "201"]);
  expect(outcomes.slice(5)).toEqual(["201", "201"]);
  for (const [place, { status, body }] of answers.entries()) {
    if (status < 300) expect(body.badgeId).toBe(String(claims[place]?.[1]?.number));
  }
  await expectInSync(application);
  const { badges, events } = await readRows(application);
  const made = events.map(({ payload }) => JSON.parse(payload).data).filter(({ invitationId }) => invitationId);
  expect(made.map(({ invitationId }) => invitationId).toSorted()).toEqual(
    invitations.map(({ token }) => token).toSorted(),
  );
  const replaced = badges.filter(({ supersededAt }) => supersededAt !== null).map(({ number }) => String(number));
  expect(replaced).toHaveLength(2);
  expect(replaced).toContain(old.body.badgeId);
  expect(made.flatMap(({ replacedBadgeId }) => replacedBadgeId ?? []).toSorted()).toEqual(replaced.toSorted());
});
