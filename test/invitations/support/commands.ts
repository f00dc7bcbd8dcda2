import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect } from "vitest";
import type { TestApplication } from "../../support/application.ts";
import { testContext } from "../../support/context.ts";
import { type Answer, serverHeaders } from "../../support/http.ts";
import { fc } from "../../support/random.ts";
import { sweep } from "../../support/sweep.ts";
import { outcome } from "./calls.ts";
import { ahead, moveClock, SECOND } from "./clock.ts";
import { callDirectly } from "./direct.ts";
import { expectConsistent, isLive, isReserved, rowFaults } from "./invariants.ts";
import type { Model, ModelInvitation } from "./model.ts";
import { readRows } from "./storage.ts";

type Command = fc.AsyncCommand<Model, TestApplication>;

const DEVICES = ["phone 1", "phone 2", "phone 3"];
const USERS = ["alice", "bob"];

const userDevice = fc.record({ udid: fc.constantFrom(...DEVICES), userId: fc.constantFrom(...USERS) });
type UserDevice = { udid: string; userId: string };
const keyOf = ({ udid, userId }: UserDevice): string => `${udid} of ${userId}`;

/** Which of the invitations there are by then. */
const pick = fc.nat({ max: 5 });
const picked = ({ invitations }: Model, place: number): ModelInvitation | undefined =>
  invitations[place % Math.max(invitations.length, 1)];

function requestBadge(application: TestApplication, { udid, userId }: UserDevice, more: object): Promise<Answer> {
  const headers = { applicationid: application.id, udid };
  return callDirectly("POST", "/v1/badge", { headers, body: { userId, ...more } });
}

function command(
  text: string,
  run: (model: Model, application: TestApplication) => Promise<void>,
  check: (model: Model) => boolean = () => true,
): Command {
  return { check, run, toString: () => text };
}

/** A call of a client: it can be made again, as if its answer had been lost. */
function request(
  text: string,
  run: (model: Model, application: TestApplication) => Promise<void>,
  check?: (model: Model) => boolean,
): Command {
  return command(
    text,
    async (model, application) => {
      model.repeatLast = () => run(model, application);
      await run(model, application);
      await expectAsModel(model, application);
    },
    check,
  );
}

const issue = userDevice.map((who) =>
  request(`issue to ${keyOf(who)}`, async (model, application) => {
    const has = model.badges.get(keyOf(who));
    const next = has === undefined ? model.findNext() : [];
    const answer = await requestBadge(application, who, {});
    if (has !== undefined) {
      expectAnswer(answer, "200", has);
    } else if (next.length === 0) {
      expectAnswer(answer, "503 NUMBERS_EXHAUSTED");
    } else {
      model.issue(keyOf(who), expectNumber(model, answer, next));
    }
  }),
);

const invite = fc.integer({ min: 1, max: 4 }).map((seconds) =>
  request(`invite for ${seconds} s`, async (model, application) => {
    // No two end at one moment, so the order in which their numbers come back is certain.
    const milliseconds = seconds * SECOND + model.invitations.length + 1;
    const next = model.findNext();
    const expiresAt = Date.now() + milliseconds;
    const headers = { ...serverHeaders(application), udid: "creator" };
    const answer = await callDirectly("POST", "/v1/invitation", { headers, body: { expiresAt: ahead(milliseconds) } });
    if (next.length === 0) {
      expectAnswer(answer, "503 NUMBERS_EXHAUSTED");
    } else {
      const number = expectNumber(model, answer, next);
      model.invitations.push({ token: String(answer.body.id), number, expiresAt, end: null, isBack: false });
    }
  }),
);

const claimOne = fc.tuple(pick, userDevice).map(([place, who]) =>
  request(
    `claim ${place} by ${keyOf(who)}`,
    async (model, application) => {
      const invitation = picked(model, place);
      if (!invitation) return;
      const answer = await requestBadge(application, who, { invitationToken: invitation.token });
      const state = model.stateOf(invitation);
      if (state === "pending") {
        expectAnswer(answer, "201", invitation.number);
        model.issue(keyOf(who), invitation.number);
        invitation.end = { kind: "claimed", by: keyOf(who) };
      } else if (invitation.end?.kind === "claimed" && invitation.end.by === keyOf(who)) {
        expectAnswer(answer, "200", model.badges.get(keyOf(who)));
      } else {
        expectAnswer(answer, `${state === "claimed" ? 409 : 410} ${state.toUpperCase()}_INVITATION`);
      }
    },
    ({ invitations }) => invitations.length > 0,
  ),
);

const revokeOne = pick.map((place) =>
  request(
    `revoke ${place}`,
    async (model, application) => {
      const invitation = picked(model, place);
      if (!invitation) return;
      const path = `/v1/invitation/${invitation.token}/revoke`;
      const answer = await callDirectly("PATCH", path, { headers: serverHeaders(application) });
      const state = model.stateOf(invitation);
      if (state === "pending") {
        expectAnswer(answer, "200", invitation.number);
        invitation.end = { kind: "revoked", answer: answer.body };
        model.giveBack(invitation, Date.now());
      } else if (invitation.end?.kind === "revoked") {
        expect(answer).toMatchObject({ status: 200, body: invitation.end.answer });
      } else {
        expectAnswer(answer, `${state === "claimed" ? 409 : 410} ${state.toUpperCase()}_INVITATION`);
      }
    },
    ({ invitations }) => invitations.length > 0,
  ),
);

const wait = fc.integer({ min: 2, max: 5 }).map((seconds) =>
  command(`wait ${seconds} s`, async () => {
    moveClock(seconds * SECOND);
  }),
);

const sweepAll = fc.constant(
  command("sweep", async (model, application) => {
    await sweep([testContext().context]);
    model.endDue();
    await expectAsModel(model, application);
  }),
);

const evict = fc.constant(
  command("evict the object", async (model, application) => {
    const object = env.ALLOCATOR.getByName(application.id);
    // Only an object that runs can be evicted.
    await runInDurableObject(object, () => {});
    await evictDurableObject(object);
    await expectNumbersAsModel(model, application);
  }),
);

const repeatLast = fc.constant(
  command(
    "make the last call again",
    async (model, application) => {
      await model.repeatLast?.();
      await expectAsModel(model, application);
    },
    (model) => model.repeatLast !== null,
  ),
);

/** Every command; those that hand out numbers and give them back come more often. */
export const COMMANDS: fc.Arbitrary<Command>[] = [
  issue,
  issue,
  invite,
  invite,
  invite,
  claimOne,
  claimOne,
  revokeOne,
  revokeOne,
  wait,
  sweepAll,
  evict,
  repeatLast,
];

function expectAnswer(answer: Answer, expected: string, number?: number): void {
  expect(outcome(answer)).toBe(expected);
  if (number !== undefined) expect(answer.body.badgeId).toBe(String(number));
}

/** The answer hands out a number: one of these, or one that was never handed out before. */
function expectNumber(model: Model, answer: Answer, next: "fresh" | readonly number[]): number {
  expectAnswer(answer, "201");
  const number = Number(answer.body.badgeId);
  if (next === "fresh") expect(model.known).not.toContain(number);
  else expect(next).toContain(number);
  model.take(number);
  return number;
}

/** D1 says what the model says, after every step. */
async function expectAsModel(model: Model, application: TestApplication): Promise<void> {
  const rows = await readRows(application);
  const { badges, invitations } = rows;
  const due = new Set(
    invitations
      .filter(({ state, expiresAtTime }) => state === "pending" && expiresAtTime <= Date.now())
      .map(({ number }) => number),
  );
  const numbers = (all: readonly { number: number }[]) => all.map(({ number }) => String(number)).sort();
  expect({
    faults: rowFaults(rows),
    live: numbers(badges.filter(isLive)),
    retired: numbers(badges.filter(({ retiredAt }) => retiredAt !== null)),
    // Past its time a reservation may stay until the sweep comes.
    reserved: numbers(badges.filter((row) => isReserved(row) && !due.has(row.number))),
  }).toEqual({
    faults: [],
    live: [...model.badges.values()].map(String).sort(),
    retired: model.retired.map(String).sort(),
    reserved: numbers(model.invitations.filter((invitation) => model.stateOf(invitation) === "pending")),
  });
}

/** D1's rows fit together, and the freed numbers are the model's. */
export async function expectNumbersAsModel(model: Model, application: TestApplication): Promise<void> {
  await sweep([testContext().context]);
  model.endDue();
  const { freed } = await expectConsistent(application);
  expect(freed.toSorted()).toEqual(model.free.map(({ number }) => number).toSorted());
}
