import { afterEach, describe, expect, it } from "vitest";
import { ENTRY } from "../allocator/support.ts";
import { aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { HeldTrips } from "../support/held.ts";
import { type Answer, requestBadge } from "../support/http.ts";
import { StandingTimers } from "../support/timers.ts";
import { claim, type Invitation, invite, outcome, requestInvitation, revoke } from "./support/calls.ts";
import { ahead, DAY } from "./support/clock.ts";
import { useQuietLog } from "./support/log.ts";
import { freedNumbers, RECORDED_EVENTS, readRows, rowsInSync } from "./support/storage.ts";

useQuietLog();

let timers: StandingTimers;

afterEach(() => {
  timers.stop();
});

type Act = (application: TestApplication, invitation: Invitation) => Promise<Answer>;

/** A call that changes something, which D1 executes only after its caller was told 503, when the test lets it. */
async function callLate(act: Act) {
  const application = await createApplication({ size: 5, ...RECORDED_EVENTS });
  const invitation = await invite(application, ahead(DAY));
  timers = new StandingTimers();
  const held = new HeldTrips(ENTRY);
  await aroundObjectD1(application, () => held.around);
  const late = act(application, invitation);
  await timers.pass(11_000, () => held.count === 1);
  expect(outcome(await late)).toBe("503 UNAVAILABLE");
  held.stop();
  return { application, invitation, held };
}

/** D1 executes the late batches, or refuses them because their turn is over. */
const letThrough = (held: HeldTrips): Promise<unknown> =>
  held.letThrough().catch((error) => expect(String(error)).toContain("application_head.sequence"));

const login: Act = (of) => requestBadge(of, "phone", { userId: "alice" });
const loginOfAnother: Act = (of) => requestBadge(of, "other", { userId: "bob" });
const claimIt: Act = (of, { token }) => claim(of, "phone", "alice", token);
const claimByAnother: Act = (of, { token }) => claim(of, "other", "bob", token);
const revokeIt: Act = (of, { token }) => revoke(of, token);

describe("a call that was decided and got 503 has happened when the next change has its response (contract sections 1, 5 and 21)", () => {
  it.each([
    ["a login", "before", login, 1],
    ["a login", "after", login, 1],
    ["a claim", "before", claimIt, 1],
    ["a claim", "after", claimIt, 1],
    ["a revocation", "before", revokeIt, 0],
    ["a revocation", "after", revokeIt, 0],
  ] as const)("%s that D1 gets %s its repetition happens once", async (_, when, act, told) => {
    const { application, invitation, held } = await callLate(act);
    if (when === "before") await letThrough(held);
    const answers = [await act(application, invitation)];
    await letThrough(held);
    answers.push(await act(application, invitation));
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const [number, again] = answers.map(({ body }) => Number(body.badgeId));
    expect(again).toBe(number);
    const { badges, events } = await rowsInSync(application);
    expect(events).toHaveLength(told);
    expect(badges.filter((row) => row.ordinal !== null)).toHaveLength(told);
    if (act !== login) expect(number).toBe(invitation.number);
    expect(await freedNumbers(application)).toEqual(act === revokeIt ? [number] : []);
  });

  it.each<[string, Act, Act, string]>([
    ["a login leaves its number to its device", login, loginOfAnother, "201"],
    ["a claim goes before another's", claimIt, claimByAnother, "409 CLAIMED_INVITATION"],
    ["a claim goes before a revocation", claimIt, revokeIt, "409 CLAIMED_INVITATION"],
    ["a revocation goes before a claim", revokeIt, claimIt, "410 REVOKED_INVITATION"],
  ])("%s, and the batch that hung changes nothing when it comes late", async (_, late, later, expected) => {
    const { application, invitation, held } = await callLate(late);
    expect(outcome(await later(application, invitation)).slice(0, expected.length)).toBe(expected);
    const rows = await readRows(application);
    await letThrough(held);
    expect(await readRows(application)).toEqual(rows);
    expect((await late(application, invitation)).status).toBe(200);
    await rowsInSync(application);
  });

  it("a reservation that nobody was told of blocks no number for ever", async () => {
    const { application, held } = await callLate((of) => requestInvitation(of, { expiresAt: ahead(DAY) }));
    await letThrough(held);
    // Of five numbers one invitation has one, and the reservation another until it is over.
    for (let count = 2; count < 5; count++) await invite(application, ahead(DAY));
    expect(outcome(await requestInvitation(application, { expiresAt: ahead(DAY) }))).toBe("503 NUMBERS_EXHAUSTED");
    await rowsInSync(application);
  });
});
