/// <reference types="vite/client" />
import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { version as release } from "../../package.json";
import { SUBSCRIBABLE_EVENTS } from "../../src/shared/events.ts";
import { newRandomId } from "../../src/shared/identifiers.ts";
import { CALL_DEADLINE_MILLISECONDS } from "../../src/shared/limits/allocator-limits.ts";
import { Allocator } from "../../src/worker/allocator/allocator.ts";
import { CALL_VERSION, type CallMessage, type CallOutcome } from "../../src/worker/allocator/commands.ts";
import { takeStep, withBadge } from "../badges/life-support.ts";
import { DAY, moveClock, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { allocatorOf, endAllocator, wake } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { runSql } from "../support/home.ts";
import { requestBadge } from "../support/http.ts";
import { restore, takeSnapshot } from "../support/restoration.ts";
import { formOf, NUMBER, type ReleaseRecord, recordRelease, releaseRecord, textOf } from "./release-record.ts";
import { expectInSync, sequenceOf, stateOf } from "./support.ts";

const log = useQuietLog();
useStandingClock();

/** What releases have stored and sent, oldest first (CONTRIBUTING.md, Add a migration). */
const records = Object.entries(import.meta.glob("./entries/*.json", { eager: true, import: "default" }))
  .map(([path, text]) => ({ name: path.replace(/^.*\/|\.json$/g, ""), record: releaseRecord.parse(text) }))
  .toSorted((one, other) => one.name.localeCompare(other.name, "en", { numeric: true }));

let others = 0;

/** When a recorded call was made, in milliseconds. */
const timeOf = ({ until }: CallMessage): number => (until ?? Date.now()) - CALL_DEADLINE_MILLISECONDS;

/** Moves the clock back to when the record was made: the ends of its badges must not have passed, nor the days that the log is kept. */
const returnTo = (milliseconds: number) => vi.setSystemTime(milliseconds);

/** An application in the place of the recorded one, which has another ID and other numbers; and its record. */
async function standIn(recorded: ReleaseRecord): Promise<{ application: TestApplication; record: ReleaseRecord }> {
  const shift = ++others * 1000;
  returnTo(Math.min(...recorded.calls.map(({ message }) => timeOf(message))));
  // Of the test before: an invitation is one application's only.
  await runSql("DELETE FROM invitation");
  const { firstNumber, lastNumber, applicationId } = recorded;
  const events = SUBSCRIBABLE_EVENTS.join();
  const application = await createApplication({
    ...{ firstNumber: firstNumber + shift, lastNumber: lastNumber + shift, reuseAfterSeconds: 0 },
    ...{ webhookUrl: "https://hooks.example/badges", webhookHeldAt: 1, events },
  });
  const text = JSON.stringify(recorded).replaceAll(applicationId, application.id);
  const shifted = text.replace(NUMBER, (number) => String(Number(number) + shift));
  return { application, record: releaseRecord.parse(JSON.parse(shifted)) };
}

/** Puts what a release has stored into an allocator, which the allocator of today then opens. */
async function takeOverStorage(application: TestApplication, { schema, storage }: ReleaseRecord): Promise<void> {
  await runInDurableObject(allocatorOf(application), (_, state) => {
    const { sql } = state.storage;
    for (const { name } of sql.exec<{ name: string }>(TABLES).toArray()) sql.exec(`DROP TABLE "${name}"`);
    for (const statement of schema) sql.exec(statement);
    for (const [table, rows] of Object.entries(storage)) {
      for (const row of rows) {
        const names = Object.keys(row).map((name) => `"${name}"`);
        sql.exec(`INSERT INTO "${table}" (${names}) VALUES (${names.map(() => "?")})`, ...Object.values(row));
      }
    }
  });
  await endAllocator(application);
}

const TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\'";

describe.each(records)(
  "release $name, after a deployment of this one (contract section 21)",
  ({ record: recorded }) => {
    it("a restored D1 gets all of the log that the release has left", async () => {
      const { application, record } = await standIn(recorded);
      await takeOverStorage(application, record);
      returnTo(Math.max(...(record.storage.entry ?? []).map(({ kept_at }) => Number(kept_at))));
      await restore(application, new Map([["application_head", [record.head]]]));
      await wake(application, true);
      await expectInSync(application);
      const logged = (record.storage.entry ?? []).map((row) => changes.parse(row.changes));
      const count = async (table: string) =>
        (await runSql(`SELECT 1 FROM ${table} WHERE application_id = ?1`, application.id)).results.length;
      expect(await count("history")).toBe(logged.flatMap(({ history }) => history).length);
      expect(await count("webhook_event")).toBe(logged.flatMap(({ events }) => events).length);
    });

    it("calls of the release's Worker are decided as its own allocator did", async () => {
      const { application, record } = await standIn(recorded);
      const keys = await keysOf(application);
      /** Numbers that were drawn then, and now. */
      const drawn = new Map<string, string>();
      for (const { message, outcome } of record.calls) {
        returnTo(timeOf(message));
        const { command, ...rest } = callMessage.parse(JSON.parse(replaceNumbers(JSON.stringify(message), drawn)));
        const found = await allocatorOf(application).call(application.id, {
          ...rest,
          ...{ id: newRandomId(), until: Date.now() + CALL_DEADLINE_MILLISECONDS },
          command: "rules" in command ? { ...command, rules: { ...command.rules, ...keys } } : command,
        });
        const now = numbersOf(found.outcome);
        for (const [index, number] of numbersOf(outcome).entries()) drawn.set(number, now[index] ?? "none");
        const told = JSON.parse(replaceNumbers(JSON.stringify(withoutChance(outcome)), drawn));
        expect(withoutChance(found.outcome), command.kind).toMatchObject(told);
      }
      await expectInSync(application);
    });
  },
);

const callMessage = z.custom<CallMessage>();
const changes = z
  .string()
  .transform((text) => JSON.parse(text))
  .pipe(z.object({ history: z.array(z.unknown()).default([]), events: z.array(z.unknown()).default([]) }));

/** Numbers of badges that an outcome names, in their order. */
const numbersOf = (outcome: CallOutcome): string[] => JSON.stringify(outcome).match(NUMBER) ?? [];

const replaceNumbers = (text: string, numbers: ReadonlyMap<string, string>): string =>
  text.replace(NUMBER, (number) => numbers.get(number) ?? number);

/** What depends on the time of a call, or on chance, is replaced by its name. */
const withoutChance = (outcome: CallOutcome): object =>
  JSON.parse(JSON.stringify(outcome), (name, value) =>
    /(At|Until)$|^(eventId|signingKeyId)$/.test(name) && value !== null ? name : value,
  );

/** What the rules of this run's application have that a record cannot: keys, sealed to the keys of this run. */
async function keysOf(application: TestApplication) {
  const sent: CallMessage[] = [];
  const decide = Allocator.prototype.call;
  const spy = vi.spyOn(Allocator.prototype, "call").mockImplementation(async function (this: Allocator, id, message) {
    sent.push(structuredClone(message));
    return decide.call(this, id, message);
  });
  await requestBadge(application, "nobody", { userId: "nobody", invitationToken: "x".repeat(26) });
  spy.mockRestore();
  const command = sent[0]?.command;
  if (command?.kind !== "badge") throw new Error("a login is a command for a badge");
  const { rootKey, signingKey } = command.rules;
  return { rootKey, signingKey };
}

describe("a message or an entry of a later release (contract section 21)", () => {
  it("a message of a later release is not decided: the call gets 503, and changes nothing", async () => {
    const { application, number } = await withBadge();
    const sequence = await sequenceOf(application);
    const decide = Allocator.prototype.call;
    vi.spyOn(Allocator.prototype, "call").mockImplementation(async function (this: Allocator, id, message) {
      return decide.call(this, id, { ...message, version: CALL_VERSION + 1 });
    });
    const { status, body, headers } = await takeStep(application, number, "suspend");
    expect([status, body, headers.has("retry-after")]).toEqual([503, { error: "UNAVAILABLE" }, true]);
    expect([await sequenceOf(application), await stateOf(application, number)]).toEqual([sequence, "active"]);
    const line = { event: "call-of-later-release", level: "warn", version: CALL_VERSION + 1 };
    expect(log.lines()).toContainEqual(expect.objectContaining(line));
  });

  it("an entry of a later release is not sent to a restored D1, and nothing is lost: the release that reads it sends it", async () => {
    const { application, number } = await withBadge();
    const snapshot = await takeSnapshot(application);
    await takeStep(application, number, "suspend");
    const setVersion = (version: number) =>
      runInDurableObject(allocatorOf(application), (_, { storage: { sql } }) => {
        sql.exec("UPDATE entry SET changes = json_set(changes, '$.version', ?)", version);
      });
    await setVersion(2);
    await restore(application, snapshot);
    await expect(async () => wake(application, true)).rejects.toThrow("D1 is unavailable");
    expect(await stateOf(application, number)).toBe("active");
    expect(log.lines()).toContainEqual(expect.objectContaining({ event: "entry-refused", level: "error" }));
    await setVersion(1);
    await wake(application, true);
    expect(await stateOf(application, number)).toBe("suspended");
    await expectInSync(application);
  });
});

describe("what this release stores and sends (contract section 21)", () => {
  it("what this release stores has the form of the newest record, or a record of its own", async () => {
    // Noon: if a day ended during the recording, the entries would have one more field.
    moveClock(DAY - (Date.now() % DAY) + DAY / 2);
    const recorded = await recordRelease();
    const own = records.find(({ name }) => name === release) ?? records.at(-1);
    const isChanged = JSON.stringify(own && formOf(own.record)) !== JSON.stringify(formOf(recorded));
    // Deleted, or of a release that has none yet: it is written.
    if (isChanged && own?.name !== release) {
      await expect(textOf(recorded)).toMatchFileSnapshot(`./entries/${release}.json`);
    } else {
      expect(formOf(recorded)).toEqual(own && formOf(own.record));
    }
  });
});
