import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import { PLATFORM_TRIES } from "../../src/shared/limits/platform-limits.ts";
import { ENTRY } from "../allocator/support.ts";
import { allocatorOf, aroundAllocators, aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { type AroundTrip, aroundD1 } from "../support/d1.ts";
import { failing, isAbout, type Kind, LOCKED, LOST, type Moment, statusesOf } from "../support/faults.ts";
import { bindDatabase, homeDatabase, runSql } from "../support/home.ts";
import type { Answer } from "../support/http.ts";
import { invite } from "../support/invitations.ts";
import { badgeRows, eventRows, readRows } from "../support/rows.ts";
import { numberOf, requestQuietly, WEBHOOK_URL } from "./support.ts";

const ALICE = { userId: "alice" };

const ONCE: Kind = { name: "once, retryably", times: 1, error: LOST, isOvercome: true };
const TOO_OFTEN: Kind = { ...ONCE, name: "for as long as one request tries", times: PLATFORM_TRIES, isOvercome: false };
const FOR_GOOD: Kind = { ...ONCE, name: "for good", error: new Error("D1_ERROR: no such table"), isOvercome: false };

/** Fails the trips to D1 that have this text in them. */
function failingTrips(text: string, kind: Kind, moment: Moment = "before"): AroundTrip {
  const fail = failing(kind, moment);
  return (statements, send) => (isAbout(statements, text) ? fail(send) : send());
}

/** Checks an application with one user device: all responses have one number, at most one is 201, and there is one badge with one event. */
async function expectOneBadge(application: { id: ApplicationId }, answers: readonly Answer[]): Promise<number> {
  const granted = answers.filter(({ status }) => status < 300);
  const [number, ...others] = new Set(granted.map(numberOf));
  if (number === undefined) expect.fail("no request was granted");
  expect(others).toEqual([]);
  expect(granted.filter(({ status }) => status === 201).length).toBeLessThanOrEqual(1);
  const badges = await badgeRows(application);
  expect(badges.map((badge) => badge.number)).toEqual([number]);
  expect((await eventRows(application)).map(({ id }) => id)).toEqual(badges.map(({ eventId }) => eventId));
  return number;
}

/** What a phone does: tries until it is answered, and once more at its next start. */
async function askUntilAnswered(
  application: TestApplication,
  bindings: Partial<Env> = {},
  body: object = ALICE,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  const ask = async () => answers.push(await requestQuietly(application, "device", body, bindings));
  while (!answers.some(({ status }) => status < 300) && answers.length < 5) await ask();
  await ask();
  return answers;
}

/** @returns an application whose allocator has its rows, what claims an invitation for alice, and the number that it reserves */
async function prepareClaim() {
  const application = await createApplication({ webhookUrl: WEBHOOK_URL });
  const { token: invitationToken, number } = await invite(application);
  return { application, body: { ...ALICE, invitationToken }, number };
}

describe("a request that fails half-way and is retried by the client (contract sections 1, 5 and 21)", () => {
  /** D1 itself repeats a statement that only reads; the service does so only while a local database is locked. */
  const READ_KINDS = [
    { ...ONCE, error: LOCKED },
    { ...TOO_OFTEN, error: LOCKED },
    { ...ONCE, isOvercome: false },
  ];

  it.each([
    ["which application that is", "FROM application WHERE application.id", 1],
    // Near the caller, then at the primary.
    ["whether there is a badge", "FROM badge", 2],
  ])("a device has one badge when D1 fails to say %s", async (_, text, looks) => {
    for (const kind of READ_KINDS) {
      const application = await createApplication({ webhookUrl: WEBHOOK_URL });
      const fault = failingTrips(text, { ...kind, times: kind.times + looks - 1 });
      const answers = await askUntilAnswered(application, bindDatabase(aroundD1(homeDatabase(), fault)));
      expect(statusesOf(answers)).toEqual(kind.isOvercome ? [201, 200] : [503, 201, 200]);
      await expectOneBadge(application, answers);
    }
  });

  it.each(
    (["before", "after"] as const).flatMap((moment) => [ONCE, TOO_OFTEN, FOR_GOOD].map((kind) => ({ moment, kind }))),
  )("a claim has its number when the object is lost $moment it did its work: $kind.name", async ({ moment, kind }) => {
    const { application, body, number } = await prepareClaim();
    const fail = failing(kind, moment);
    // The object loses what it had in memory.
    const ALLOCATOR = aroundAllocators(async (_, call) => {
      try {
        return await fail(call);
      } catch (error) {
        await evictDurableObject(allocatorOf(application)).catch(() => {});
        throw error;
      }
    });
    const answers = await askUntilAnswered(application, { ALLOCATOR }, body);
    expect(statusesOf(answers)).toEqual([201, 200]);
    expect(await expectOneBadge(application, answers)).toBe(number);
  });

  it.each<[string, (application: TestApplication) => Promise<void>]>([
    [
      "does not get its rows from D1",
      (application) => aroundObjectD1(application, () => failingTrips("FROM badge", TOO_OFTEN)),
    ],
    [
      "cannot set its alarm",
      (application) =>
        runInDurableObject(allocatorOf(application), (_, { storage }) => {
          vi.spyOn(storage, "setAlarm").mockRejectedValueOnce(new Error("storage"));
        }),
    ],
    ["crashes before it has decided", (application) => crashAt(application, "")],
    ["crashes before D1 has its entry", (application) => crashAt(application, ENTRY)],
    ["crashes once D1 has its entry", (application) => crashAt(application, ENTRY, "after")],
  ])("a device has one badge, and the object its alarm, when it %s", async (_, breakObject) => {
    const application = await createApplication({ webhookUrl: WEBHOOK_URL });
    await breakObject(application);
    const answers = await askUntilAnswered(application);
    expect(statusesOf(answers)).toEqual([201, 200]);
    const number = await expectOneBadge(application, answers);
    expect(await runInDurableObject(allocatorOf(application), (_, { storage }) => storage.getAlarm())).not.toBeNull();
    expect(numberOf(await requestQuietly(application, "other", ALICE))).not.toBe(number);
    expect(new Set((await badgeRows(application)).map(({ change }) => change)).size).toBe(2);
  });

  /** The object dies with the first trip to D1 that has this text in it. */
  const crashAt = (application: TestApplication, text: string, moment: Moment = "before") =>
    aroundObjectD1(application, (state) => async (statements, send) => {
      if (!isAbout(statements, text)) return send();
      // A call leaves a real object only when what it has stored before is safe (Durable Objects: output gates).
      await state.storage.sync();
      if (moment === "after") await send();
      state.abort("the object dies");
      return send();
    });
});

it("while D1 cannot record the event of a claimed badge, it has nothing of it (contract section 8)", async () => {
  const { application, body } = await prepareClaim();
  const before = await readRows(application);
  await runSql(`CREATE TRIGGER refuse_events BEFORE INSERT ON webhook_event WHEN NEW.application_id = '${application.id}'
     BEGIN SELECT RAISE(ABORT, 'refused'); END`);
  let tries = 0;
  await aroundObjectD1(application, () => async (statements, send) => {
    if (isAbout(statements, ENTRY) && ++tries === 3) {
      expect(await readRows(application)).toEqual(before);
      await runSql("DROP TRIGGER refuse_events");
    }
    return send();
  });
  const answers = await askUntilAnswered(application, {}, body);
  expect(statusesOf(answers)).toEqual([201, 200]);
  await expectOneBadge(application, answers);
});
