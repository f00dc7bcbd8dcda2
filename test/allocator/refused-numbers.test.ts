import { describe, expect, it, vi } from "vitest";
import { Allocator } from "../../src/worker/allocator/allocator.ts";
import { type CallResult, type Result, refused } from "../../src/worker/allocator/commands.ts";
import { countersOf } from "../../src/worker/allocator/counters.ts";
import { type DecidedCall, splitByNumbers } from "../../src/worker/allocator/decide-group.ts";
import { NO_CHANGES } from "../../src/worker/allocator/log-entry.ts";
import { Log } from "../../src/worker/allocator/tables/entry-log.ts";
import { Calls, type Reply } from "../../src/worker/allocator/waiting-calls.ts";
import { block, issueTo, withBadge } from "../badges/life-support.ts";
import { newPhone } from "../bound/support.ts";
import { aroundObjectD1, wake } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { isAbout } from "../support/faults.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { BADGE, callServer, outcome } from "../support/http.ts";
import { invite } from "../support/invitations.ts";
import { log } from "../support/log.ts";
import { restore, takeSnapshot } from "../support/restoration.ts";
import { badgeRows, eventRows } from "../support/rows.ts";
import { inAllocator, NOW } from "./decide/support.ts";
import { aroundNext, expectInSync, headOf, login, loseResponse, plantForeign } from "./support.ts";

const refusals = ({ id }: TestApplication) =>
  log.lines().filter(({ event, application }) => event === "number-refused" && application === id);

const ownerOf = (number: number) =>
  homeDatabase().prepare("SELECT application_id FROM badge WHERE number = ?1").bind(number).first("application_id");

function decidedAs(outcome: Result, scriptId: string | null = null): DecidedCall {
  const audit = { actor: { kind: "administrator" as const } };
  const call = {
    id: `call of ${scriptId}`,
    until: Number.MAX_SAFE_INTEGER,
    audit,
    command: { kind: "record-ends" as const },
  };
  return { waiting: { call, scriptId, done: Promise.withResolvers<Reply>() }, outcome };
}

/** An application with two numbers, of which another application has one in D1. */
async function halfTaken(): Promise<TestApplication> {
  const application = await createApplication({ size: 2, webhookUrl: "https://hooks.example/badges" });
  await wake(application);
  await plantForeign(application.firstNumber);
  return application;
}

describe("a number that another application has in D1 (contract sections 1 and 21)", () => {
  it("D1 refuses another application's number, which is never drawn again, and the caller gets another one", async () => {
    const application = await halfTaken();
    const { firstNumber, lastNumber } = application;
    const answers = [await login(application, "one"), await login(application, "two")];
    expect(answers.map(({ body }) => body.badgeId ?? body.error)).toEqual([String(lastNumber), "NUMBERS_EXHAUSTED"]);
    expect(refusals(application)).toMatchObject([{ level: "error", numbers: [firstNumber] }]);
    expect(await ownerOf(firstNumber)).toBe("app_foreign");
    expect(await eventRows(application)).toHaveLength(1);
    expect((await headOf(application)).statistics.newBadges.count).toBe(1);
    await expectInSync(application);
  });

  it("an invitation does not reserve another application's number either", async () => {
    const application = await halfTaken();
    expect((await invite(application)).number).toBe(application.lastNumber);
    expect((await headOf(application)).statistics.invitations.pending).toBe(1);
    const { results } = await runSql("SELECT number FROM invitation WHERE application_id = ?1", application.id);
    expect(results).toEqual([{ number: application.lastNumber }]);
    await login(application, "two");
    await expectInSync(application);
  });

  it("a refused number of one call does not affect the other calls of its group", async () => {
    const application = await createApplication({ size: 40 });
    await wake(application);
    for (let offset = 0; offset < 20; offset++) await plantForeign(application.firstNumber + offset);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, place) => login(application, `phone ${place}`)));
    const numbers = answers.map(({ body }) => Number(body.badgeId));
    expect(new Set(numbers).size).toBe(20);
    expect(numbers.every((number) => number >= application.firstNumber + 20)).toBe(true);
    await expectInSync(application);
  });

  it.each([
    ["the same", "NUMBERS_EXHAUSTED", false],
    // It cannot know that nobody has seen the number.
    ["the next", "UNAVAILABLE", true],
  ])("%s instance decides again what was refused because of a badge that D1 refuses", async (_, told, ends) => {
    const application = await createApplication({ size: 1 });
    await wake(application);
    await plantForeign(application.firstNumber);
    const phone = await newPhone(application);
    const other = await phone.withOtherKey();
    const calls = vi.spyOn(Allocator.prototype, "call");
    await aroundObjectD1(application, (state) => async (statements, send) => {
      // Both logins wait while D1 gets another call, so they are decided together.
      while (calls.mock.calls.length < 3) await scheduler.wait(1);
      const result = await send();
      if (ends && isAbout(statements, "INSERT INTO badge")) state.abort("the allocator ends");
      return result;
    });
    const blocked = block(application, "mallory");
    while (calls.mock.calls.length < 1) await scheduler.wait(1);
    const answers = await Promise.all([phone, other].map((each) => each.post(BADGE, { userId: "alice" })));
    expect((await blocked).status).toBe(200);
    expect(answers.map(outcome).toSorted()).toEqual(["503 NUMBERS_EXHAUSTED", `503 ${told}`]);
    await expectInSync(application);
  });

  it("the next instance decides again what was refused because of a number that D1 refused, also after the deadline of the call that took it", () =>
    inAllocator((open) => {
      const scene = open();
      const [entries, counters] = [new Log(scene.tables.orm), countersOf(scene.counters)];
      entries.begin([{ sequence: 0, entry: "begun", counters }], NOW);
      const calls: CallResult[] = [
        { id: "first", until: NOW, result: { kind: "created", number: 7, keyThumbprint: null } },
        { id: "second", until: NOW + 1, result: refused("NUMBERS_EXHAUSTED") },
      ];
      const entry = { counters, changes: NO_CHANGES, calls: [], keptAt: NOW };
      entries.append({ ...entry, sequence: 1, id: "decided", calls });
      entries.append({ ...entry, sequence: 2, id: "withdrawn", changes: { ...NO_CHANGES, withdrawn: [7] } });
      expect(new Calls(entries).known("second", NOW)).toBeUndefined();
    }));

  it("a command of the script is not decided again: its administrator may have read that it was refused", () => {
    const decided = [null, "command 1"].map((scriptId) => decidedAs(refused("ENDED_BADGE"), scriptId));
    const [ofCaller, ofScript] = decided;
    expect(splitByNumbers(decided, [1])).toEqual({ naming: [], refused: [ofCaller], others: [ofScript] });
  });

  it.each<Result>([
    { kind: "created", number: 7, keyThumbprint: null },
    { kind: "existing", number: 7, keyThumbprint: null },
    { kind: "user", userId: "alice", numbers: [8, 7] },
    { kind: "invitations", results: [{ code: "INVALID_EXPIRESAT" }, { number: 8 }, { number: 7 }] },
    { kind: "invitation-revoked", number: 7, expiresAt: "2030-01-01T00:00:00Z", revokedAt: 0 },
    { kind: "invitation-erased", number: 7 },
  ])("a call whose result $kind names a refused number is decided again, and no other call", (result) => {
    const one = decidedAs(result);
    expect(splitByNumbers([one], [6, 7])).toEqual({ naming: [one], refused: [], others: [] });
    expect(splitByNumbers([one], [6])).toEqual({ naming: [], refused: [], others: [one] });
  });

  it("D1's head names a refused number until it is withdrawn, also when the batch's response was lost", async () => {
    const application = await halfTaken();
    await aroundNext(application, "INSERT INTO badge", loseResponse);
    const statuses = [
      await login(application, "one"),
      await login(application, "two"),
      await login(application, "one"),
    ];
    const numbers = statuses.flatMap(({ body }) => (body.badgeId === undefined ? [] : [body.badgeId]));
    expect(new Set(numbers)).toEqual(new Set([String(application.lastNumber)]));
    expect(await ownerOf(application.firstNumber)).toBe("app_foreign");
    await expectInSync(application);
  });

  it("a number that another application took during a restore is withdrawn, and the feed's cursors expire", async () => {
    const application = await createApplication();
    await wake(application);
    const snapshot = await takeSnapshot(application);
    const number = await issueTo(application, "phone", "alice");
    const { headers } = await callServer(application, "GET", "/v1/changes");
    await restore(application, snapshot);
    await plantForeign(number);
    await wake(application, true);
    await wake(application);
    expect(refusals(application)).toMatchObject([{ numbers: [Number(number)] }]);
    expect(await ownerOf(Number(number))).toBe("app_foreign");
    expect(await badgeRows(application)).toEqual([]);
    const cursor = headers.get("pagination-cursor");
    expect(outcome(await callServer(application, "GET", `/v1/changes?cursor=${cursor}`))).toBe("410 EXPIRED_CURSOR");
    const again = await login(application, "phone");
    expect(again.status).toBe(201);
    expect(again.body.badgeId).not.toBe(number);
    await expectInSync(application);
  });

  it("withdrawing a number changes no row of the other application", async () => {
    const { application, number } = await withBadge();
    const snapshot = await takeSnapshot(application);
    await callServer(application, "PATCH", `/v1/badges/${number}/suspend`);
    await restore(application, snapshot);
    await runSql("UPDATE badge SET application_id = 'app_foreign' WHERE number = ?1", Number(number));
    await wake(application, true);
    const row = await homeDatabase()
      .prepare("SELECT application_id, state FROM badge WHERE number = ?1")
      .bind(Number(number))
      .first();
    expect(row).toEqual({ application_id: "app_foreign", state: "active" });
  });
});
