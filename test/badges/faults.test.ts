import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import { PLATFORM_TRIES } from "../../src/shared/limits/platform-limits.ts";
import { ENTRY } from "../allocator/support.ts";
import { invite } from "../invitations/support/calls.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { readRows } from "../invitations/support/storage.ts";
import { type AroundCall, allocatorOf, aroundAllocators, aroundObjectD1, wake } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { type AroundTrip, aroundD1 } from "../support/d1.ts";
import { failing, isAbout, type Kind, LOCKED, LOST, type Moment, statusesOf } from "../support/faults.ts";
import { bindDatabase, homeDatabase, runSql } from "../support/home.ts";
import type { Answer } from "../support/http.ts";
import { badgeRows, eventRows } from "../support/rows.ts";
import { numberOf, requestQuietly, WEBHOOK_URL } from "./support.ts";

useQuietLog();

const FOR_GOOD = "once, for good";

const KINDS: readonly Kind[] = [
  { name: "once, retryably", times: 1, error: LOST, isOvercome: true },
  { name: "for as long as one request tries", times: PLATFORM_TRIES, error: LOST, isOvercome: false },
  { name: FOR_GOOD, times: 1, error: new Error("D1_ERROR: no such table: badge"), isOvercome: false },
];

const MOMENTS: readonly Moment[] = ["before", "after"];
/** Each kind at each moment. */
const CASES = MOMENTS.flatMap((moment) => KINDS.map((kind) => ({ moment, kind })));

/** Of a statement that only reads: D1 itself repeats it, and the service does so only while a local database is locked. */
const READ_KINDS: readonly Kind[] = [
  ...KINDS.map((kind) => (kind.error === LOST ? { ...kind, error: LOCKED } : kind)),
  { name: "once, after D1's own tries", times: 1, error: LOST, isOvercome: false },
];

const READ_CASES = MOMENTS.flatMap((moment) => READ_KINDS.map((kind) => ({ moment, kind })));

/** What the client of a badge is answered, one try after the other, when the first one's work was done or not. */
function expectedStatuses({ isOvercome }: Kind, isDone: boolean): number[] {
  if (isOvercome) return [201, 200];
  return isDone ? [503, 200, 200] : [503, 201, 200];
}

/** Fails the trips to D1 that have this text in them. */
function failingTrips(text: string, kind: Kind, moment: Moment): AroundTrip {
  const fail = failing(kind, moment);
  return (statements, send) => (isAbout(statements, text) ? fail(send) : send());
}

/**
 * Checks an application that has one user device and a webhook URL: all responses have the same number, at most one of them is
 * 201, and there is one badge with one event.
 */
async function expectOneBadge(application: { id: ApplicationId }, answers: readonly Answer[]): Promise<number> {
  const granted = answers.filter(({ status }) => status < 300);
  const [number, ...others] = new Set(granted.map(numberOf));
  if (number === undefined) expect.fail("no request was granted");
  expect(others).toEqual([]);
  expect(granted.filter(({ status }) => status === 201).length).toBeLessThanOrEqual(1);
  const refused = answers.filter(({ status }) => status >= 300);
  expect(refused.map(({ status, body, headers }) => [status, body, headers.has("retry-after")])).toEqual(
    refused.map(({ status }) =>
      status === 500 ? [500, { error: "INTERNAL_ERROR" }, false] : [503, { error: "UNAVAILABLE" }, true],
    ),
  );
  const badges = await badgeRows(application);
  expect(badges.map((badge) => badge.number)).toEqual([number]);
  expect((await eventRows(application)).map(({ id }) => id)).toEqual(badges.map(({ eventId }) => eventId));
  return number;
}

const ALICE = { userId: "alice" };

/** What a phone does: tries until it is answered, and once more at its next start. */
async function askUntilAnswered(
  application: TestApplication,
  { body = ALICE, bindings = {} }: { body?: object; bindings?: Partial<Env> } = {},
): Promise<Answer[]> {
  const answers: Answer[] = [];
  const isAnswered = () => answers.some(({ status }) => status < 300);
  const ask = async () => answers.push(await requestQuietly(application, "device", body, bindings));
  while (!isAnswered() && answers.length < 5) await ask();
  await ask();
  return answers;
}

/** Alice's badge: by a login, or by an invitation. */
const WAYS = ["a new badge", "a claimed badge"] as const;

/** An application whose allocator has its rows. */
async function prepareApplication(): Promise<TestApplication> {
  const application = await createApplication({ webhookUrl: WEBHOOK_URL });
  await wake(application);
  return application;
}

/** @returns what to ask for, and the number if it is certain */
async function prepare(way: (typeof WAYS)[number]) {
  const application = await prepareApplication();
  if (way === "a new badge") return { application, body: ALICE, number: undefined };
  const { token: invitationToken, number } = await invite(application);
  return { application, body: { ...ALICE, invitationToken }, number };
}

const WAYS_AND_CASES = WAYS.flatMap((way) => CASES.map((fault) => ({ way, ...fault })));

describe("a request that fails half-way and is retried by the client (contract sections 1 and 5)", () => {
  const LOOKS = [
    { what: "which application that is", text: "FROM application WHERE application.id", looks: 1 },
    // Near the caller, then at the primary.
    { what: "whether there is a badge", text: "FROM badge", looks: 2 },
  ];

  it.each(LOOKS.flatMap((look) => READ_CASES.map((fault) => ({ ...look, ...fault }))))(
    "D1 fails $moment it reads $what: $kind.name",
    async ({ text, looks, moment, kind }) => {
      const application = await createApplication({ webhookUrl: WEBHOOK_URL });
      const fault = failingTrips(text, { ...kind, times: kind.times + looks - 1 }, moment);
      const bindings = bindDatabase(aroundD1(homeDatabase(), fault));
      const answers = await askUntilAnswered(application, { bindings });
      expect(statusesOf(answers)).toEqual(expectedStatuses(kind, false));
      await expectOneBadge(application, answers);
    },
  );

  it.each(WAYS_AND_CASES)("$way: the object is lost $moment it did its work: $kind.name", async (given) => {
    const { way, moment, kind } = given;
    const { application, body, number } = await prepare(way);
    const ALLOCATOR = aroundAllocators(callsLost(application, kind, moment));
    const answers = await askUntilAnswered(application, { body, bindings: { ALLOCATOR } });
    expect(statusesOf(answers)).toEqual([201, 200]);
    const issued = await expectOneBadge(application, answers);
    expect(issued).toBe(number ?? issued);
  });

  it.each(WAYS_AND_CASES)("$way: D1 fails $moment it writes the badge: $kind.name", async ({ way, moment, kind }) => {
    const { application, body, number } = await prepare(way);
    await aroundObjectD1(application, () => failingTrips(ENTRY, kind, moment));
    const answers = await askUntilAnswered(application, { body });
    expect(statusesOf(answers)).toEqual([201, 200]);
    const issued = await expectOneBadge(application, answers);
    expect(issued).toBe(number ?? issued);
  });

  it.each(CASES)("D1 fails $moment a new allocator reads its rows: $kind.name", async ({ moment, kind }) => {
    const application = await createApplication({ webhookUrl: WEBHOOK_URL });
    await aroundObjectD1(application, () => failingTrips("FROM badge", kind, moment));
    const answers = await askUntilAnswered(application);
    expect(statusesOf(answers)).toEqual([201, 200]);
    await expectOneBadge(application, answers);
  });

  it.each(CASES)(
    "D1 writes, its answer is lost, and it fails $moment it says so: $kind.name",
    async ({ moment, kind }) => {
      const application = await prepareApplication();
      const fail = failing(kind, moment);
      let isLost = false;
      await aroundObjectD1(application, () => async (statements, send) => {
        if (!isLost && isAbout(statements, ENTRY)) {
          isLost = true;
          await send();
          throw LOST;
        }
        return isLost && isAbout(statements, "FROM application_head") ? fail(send) : send();
      });
      const answers = await askUntilAnswered(application);
      expect(statusesOf(answers)).toEqual([201, 200]);
      await expectOneBadge(application, answers);
    },
  );

  it("the object cannot set its alarm", async () => {
    const application = await createApplication({ webhookUrl: WEBHOOK_URL });
    const alarm = () => runInDurableObject(allocatorOf(application), (_, { storage }) => storage.getAlarm());
    await runInDurableObject(allocatorOf(application), (_, { storage }) => {
      vi.spyOn(storage, "setAlarm").mockRejectedValueOnce(new Error("storage"));
    });
    const answers = await askUntilAnswered(application);
    expect(statusesOf(answers)).toEqual([201, 200]);
    expect(await alarm()).not.toBeNull();
    await expectOneBadge(application, answers);
  });

  /** The call's way to the object breaks; with it goes whatever the object had in memory. */
  function callsLost(application: TestApplication, kind: Kind, moment: Moment): AroundCall {
    const fail = failing(kind, moment);
    return async (_, call) => {
      try {
        return await fail(call);
      } catch (error) {
        await evictDurableObject(allocatorOf(application)).catch(() => {});
        throw error;
      }
    };
  }
});

describe("an object that crashes while it works (contract sections 1 and 21)", () => {
  it.each(["before D1 has its entry", "once D1 has its entry"])(
    "%s leaves the number to its device",
    async (moment) => {
      const application = await prepareApplication();
      await aroundObjectD1(application, (state) => async (statements, send) => {
        if (!isAbout(statements, ENTRY)) return send();
        // A call leaves a real object only when what it has stored before is safe (Durable Objects: output gates).
        await state.storage.sync();
        if (moment === "once D1 has its entry") await send();
        state.abort("the object dies");
        return send();
      });
      const first = await requestQuietly(application, "device", ALICE);
      const other = await requestQuietly(application, "other", { userId: "bob" });
      expect(other.status).toBe(201);
      const answers = [first, ...(await askUntilAnswered(application))];
      // The call is repeated, and the next instance finds its result in the log.
      expect(statusesOf(answers)).toEqual([201, 200, 200]);
      expect(new Set([other, ...answers].map(numberOf)).size).toBe(2);
      const rows = await badgeRows(application);
      expect(rows).toHaveLength(2);
      expect(new Set(rows.map(({ change }) => change)).size).toBe(2);
      expect(await eventRows(application)).toHaveLength(2);
    },
  );

  it("an object that crashes before it has decided leaves nothing behind", async () => {
    const application = await createApplication({ webhookUrl: WEBHOOK_URL });
    await aroundObjectD1(application, (state) => (_, send) => {
      state.abort("the object dies");
      return send();
    });
    const answers = await askUntilAnswered(application);
    expect(statusesOf(answers)).toEqual([201, 200]);
    await expectOneBadge(application, answers);
  });
});

describe("a badge and its event are written together or not at all (contract section 8)", () => {
  it.each(WAYS)("writes nothing of %s while D1 cannot record the event", async (way) => {
    const { application, body } = await prepare(way);
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
    const answers = await askUntilAnswered(application, { body });
    expect(statusesOf(answers)).toEqual([201, 200]);
    await expectOneBadge(application, answers);
  });
});

describe("a badge that a concurrent request has written (contract section 1)", () => {
  it("a badge that a concurrent request has written is returned like any other: with the newest metadata, as the current one", async () => {
    const application = await createApplication({ webhookUrl: WEBHOOK_URL });
    const winners: Answer[] = [];
    const DB = aroundD1(homeDatabase(), async (statements, send) => {
      const seen = await send();
      if (isAbout(statements, "FROM badge") && winners.length === 0) {
        winners.push(await requestQuietly(application, "device", { userId: "alice", metadata: { os: "Android" } }));
      }
      return seen;
    });
    const raced = await requestQuietly(
      application,
      "device",
      { userId: "alice", metadata: { os: "iOS" } },
      { ...bindDatabase(DB) },
    );
    expect(statusesOf([...winners, raced])).toEqual([201, 200]);
    expect(await badgeRows(application)).toMatchObject([{ metadata: '{"os":"iOS"}' }]);
    await expectOneBadge(application, [...winners, raced]);
  });

  it.each(CASES)("D1 fails $moment it stores newer metadata: $kind.name", async ({ moment, kind }) => {
    const application = await createApplication({ webhookUrl: WEBHOOK_URL });
    const first = await requestQuietly(application, "device", ALICE);
    await aroundObjectD1(application, () => failingTrips(ENTRY, kind, moment));
    const ask = () => requestQuietly(application, "device", { userId: "alice", metadata: { os: "iOS" } });
    const answers = [first, await ask(), await ask()];
    expect(statusesOf(answers)).toEqual([201, 200, 200]);
    expect(await badgeRows(application)).toMatchObject([{ metadata: '{"os":"iOS"}' }]);
    await expectOneBadge(application, answers);
  });
});
