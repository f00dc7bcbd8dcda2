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
import { boundPhone } from "../bound/support.ts";
import { allocatorOf, bindObject, endAllocator, ring, wake } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, useStandingClock } from "../support/clock.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { call, requestBadge, serverHeaders } from "../support/http.ts";
import { claim, invite, requestInvitation, revoke } from "../support/invitations.ts";
import { log } from "../support/log.ts";
import { restore, takeSnapshot } from "../support/restoration.ts";
import { expectInSync, plantForeign, putCommand, reconcile, sequenceOf, stateOf } from "./support.ts";

const row = z.record(z.string(), z.union([z.string(), z.number(), z.null()]));

/** What a release keeps in an allocator's storage, and the messages that its Worker sent there. */
const releaseRecord = z.object({
  applicationId: z.string(),
  firstNumber: z.number(),
  lastNumber: z.number(),
  /** D1's head before the first of the entries. */
  head: row,
  /** Statements that make the allocator's tables. */
  schema: z.array(z.string()),
  /** Rows by table. */
  storage: z.record(z.string(), z.array(row)),
  calls: z.array(z.object({ message: z.custom<CallMessage>(), outcome: z.custom<CallOutcome>() })),
});
type ReleaseRecord = z.infer<typeof releaseRecord>;

/** The file of a record, with one statement, row or call a line. */
function textOf({ schema, storage, calls, ...rest }: ReleaseRecord): string {
  const lines = (list: readonly unknown[]) => `[\n${list.map((each) => JSON.stringify(each)).join(",\n")}\n]`;
  const members = [
    ...Object.entries(rest).map(([name, value]) => `"${name}": ${JSON.stringify(value)}`),
    `"schema": ${lines(schema)}`,
    `"storage": {\n${Object.entries(storage)
      .map(([table, rows]) => `"${table}": ${lines(rows)}`)
      .join(",\n")}\n}`,
    `"calls": ${lines(calls)}`,
  ];
  return `{\n${members.join(",\n")}\n}\n`;
}

/** Where the numbers of recorded applications begin, and of those in their place, so that they are found in a text. */
const FIRST_NUMBER = 7_654_000_000;
const NUMBER = /\b7654\d{6}\b/g;

/** An application whose numbers begin so far behind the first of recorded ones. */
const createRecorded = (shift: number): Promise<TestApplication> =>
  createApplication({
    ...{ firstNumber: FIRST_NUMBER + shift, lastNumber: FIRST_NUMBER + shift + 99, reuseAfterSeconds: 0 },
    ...{ webhookUrl: "https://hooks.example/badges", webhookHeldAt: 1, events: SUBSCRIBABLE_EVENTS.join() },
  });

/** What the Worker says to its allocators, and hears, while something is done. */
async function recordCalls(act: () => Promise<unknown>): Promise<ReleaseRecord["calls"]> {
  const calls: ReleaseRecord["calls"] = [];
  const decide = Allocator.prototype.call;
  const spy = vi.spyOn(Allocator.prototype, "call").mockImplementation(async function (this: Allocator, id, message) {
    const reply = await decide.call(this, id, message);
    calls.push(structuredClone({ message, outcome: reply.outcome }));
    return reply;
  });
  await act();
  spy.mockRestore();
  return calls;
}

const OBJECTS =
  "SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\'";
const objectsIn = (sql: SqlStorage) => sql.exec<{ name: string; type: string; sql: string }>(OBJECTS).toArray();

/** Has this release do one of everything: each command of the Worker, and each kind of change that an entry may have. */
async function recordRelease(): Promise<ReleaseRecord> {
  const application = await createRecorded(0);
  await wake(application);
  const head = await homeDatabase()
    .prepare("SELECT * FROM application_head WHERE application_id = ?1")
    .bind(application.id)
    .first();
  const calls = await recordCalls(() => doEverything(application));
  await doWithoutCalls(application);
  const { id, firstNumber, lastNumber } = application;
  const stored = await runInDurableObject(allocatorOf(application), (_, { storage: { sql } }) => {
    const objects = objectsIn(sql);
    const tables = objects.filter(({ type }) => type === "table");
    return {
      schema: objects.map((each) => each.sql),
      storage: Object.fromEntries(tables.map(({ name }) => [name, sql.exec(`SELECT * FROM "${name}"`).toArray()])),
    };
  });
  return releaseRecord.parse({ applicationId: id, firstNumber, lastNumber, head, ...stored, calls });
}

const logIn = async (application: TestApplication, udid: string, userId: string): Promise<string> =>
  String((await requestBadge(application, udid, { userId, metadata: { os: "Android" } })).body.badgeId);

/** The range grows, and the cached settings are too old to be used. */
async function growRange({ id }: TestApplication, numbers: number): Promise<void> {
  await runSql("UPDATE application SET last_number = last_number + ?2 WHERE id = ?1", id, numbers);
  moveClock(MINUTE);
}

async function doEverything(application: TestApplication): Promise<void> {
  const server = (method: string, path: string, body?: object) =>
    call(method, path, { headers: { ...serverHeaders(application), udid: "server" }, ...(body && { body }) });
  const step = (number: string, name: string) => server("PATCH", `/v1/badges/${number}/${name}`, { reason: "as told" });

  const { badgeId } = await boundPhone(application);
  const [first, second] = [await logIn(application, "phone-1", "bob"), await logIn(application, "phone-2", "bob")];
  // A login that changes which badge of the device signs.
  await logIn(application, "phone-1", "carol");
  await logIn(application, "phone-1", "bob");
  for (const name of ["suspend", "resume", "revoke"]) await step(first, name);
  await server("PATCH", `/v1/badges/${second}`, { expiresAt: ahead(HOUR) });
  await step(badgeId, "rebind");
  await putCommand(application, { kind: "suspend", number: Number(second) }, "root");
  await wake(application);

  const [claimed, revoked, erased] = [await invite(application), await invite(application), await invite(application)];
  await claim(application, "phone-3", "carol", claimed.token);
  await revoke(application, revoked.token);
  await server("PATCH", `/v1/invitation/${erased.token}/erase`);
  await requestInvitation(
    application,
    { expiresAt: ahead(HOUR), userId: "dave", name: "Dave" },
    serverHeaders(application),
  );

  await logIn(application, "phone-4", "mallory");
  await server("PATCH", "/v1/users/mallory/block", { reason: "lost" });
  await logIn(application, "phone-5", "mallory");
  await server("PATCH", "/v1/users/mallory/unblock");
  await server("PATCH", "/v1/users/mallory/block");
  await server("PATCH", "/v1/users/mallory/erase");

  // The last numbers of the range, then one that was freed, then those by which the range grows.
  await reconcile(application, { skip: 100 });
  await logIn(application, "phone-6", "erin");
  await growRange(application, 100);
  await logIn(application, "phone-7", "erin");
}

/** Changes without a call of the Worker: by the clock, and after D1 has refused a number. */
async function doWithoutCalls(application: TestApplication): Promise<void> {
  const number = await logIn(application, "phone-8", "frank");
  const headers = serverHeaders(application);
  await call("PATCH", `/v1/badges/${number}`, { headers, body: { expiresAt: ahead(HOUR) } });
  await invite(application, ahead(HOUR));
  moveClock(HOUR);
  await endAllocator(application);
  await bindObject(application, () => ({ INVITATION_RETENTION_DAYS: "0" }));
  await ring(application);

  // All fresh numbers but two, of which another application has the first.
  await reconcile(application, { skip: 100 });
  await plantForeign(application.lastNumber + 101);
  await growRange(application, 2);
  for (const udid of ["phone-9", "phone-10"]) await logIn(application, udid, "grace");
}

/** What of a record a later release has to understand: tables, and the fields of entries and messages. */
function formOf({ schema, storage, calls }: ReleaseRecord): object {
  const json = (text: unknown): unknown => JSON.parse(z.string().parse(text));
  const entries = storage.entry ?? [];
  return {
    schema,
    entries: fieldsOf(entries.map((each) => json(each.changes))),
    counters: fieldsOf(entries.map(({ range_segments, statistics }) => [range_segments, statistics].map(json))),
    results: fieldsOf(entries.map((each) => json(each.calls))),
    messages: fieldsOf(
      calls.map(({ message }) => ({ ...message, command: { [message.command.kind]: message.command } })),
    ),
    versions: [...new Set(calls.map(({ message }) => message.version))],
    outcomes: fieldsOf(calls.map(({ outcome }) => ({ [outcome.kind]: outcome }))),
  };
}

/** Every field that some of the values have, with its type. */
function fieldsOf(values: readonly unknown[]): string[] {
  const found = new Set<string>();
  const walk = (value: unknown, path: string): void => {
    if (typeof value !== "object" || value === null) {
      found.add(`${path}: ${value === null ? "null" : typeof value}`);
    } else if (Array.isArray(value)) {
      for (const each of value) walk(each, `${path}[]`);
    } else if (isRowWrite(value)) {
      for (const column of value.columns) found.add(`${path}: ${value.op} ${value.table} ${column}`);
    } else {
      for (const [name, each] of Object.entries(value)) walk(each, `${path}.${name}`);
    }
  };
  for (const value of values) walk(value, "");
  return [...found].toSorted();
}

const rowWrite = z.object({ op: z.string(), table: z.string(), columns: z.array(z.string()) });
const isRowWrite = (value: object): value is z.infer<typeof rowWrite> => rowWrite.safeParse(value).success;

useStandingClock();

/** What releases have stored and sent, oldest first (CONTRIBUTING.md, Add a migration). */
const records = Object.entries(import.meta.glob("./entries/*.json", { eager: true, import: "default" }))
  .map(([path, text]) => ({ name: path.replace(/^.*\/|\.json$/g, ""), record: releaseRecord.parse(text) }))
  .toSorted((one, other) => one.name.localeCompare(other.name, "en", { numeric: true }));

let others = 0;

/** When a recorded call was made, in milliseconds. */
const timeOf = ({ until }: CallMessage): number => until - CALL_DEADLINE_MILLISECONDS;

/** Moves the clock back to when the record was made: the ends of its badges must not have passed, nor the days that the log is kept. */
const returnTo = (milliseconds: number) => vi.setSystemTime(milliseconds);

/** An application in the place of the recorded one, which has another ID and other numbers; and its record. */
async function standIn(recorded: ReleaseRecord): Promise<{ application: TestApplication; record: ReleaseRecord }> {
  const shift = ++others * 1000;
  returnTo(Math.min(...recorded.calls.map(({ message }) => timeOf(message))));
  // Of the test before: an invitation is one application's only.
  await runSql("DELETE FROM invitation");
  const application = await createRecorded(shift);
  const text = JSON.stringify(recorded).replaceAll(recorded.applicationId, application.id);
  const shifted = text.replace(NUMBER, (number) => String(Number(number) + shift));
  return { application, record: releaseRecord.parse(JSON.parse(shifted)) };
}

/** Puts what a release has stored into an allocator, which the allocator of today then opens. */
async function takeOverStorage(application: TestApplication, { schema, storage }: ReleaseRecord): Promise<void> {
  await runInDurableObject(allocatorOf(application), (_, state) => {
    const { sql } = state.storage;
    for (const { name, type } of objectsIn(sql)) if (type === "table") sql.exec(`DROP TABLE "${name}"`);
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
  const claim = { userId: "nobody", invitationToken: "x".repeat(26) };
  const [sent] = await recordCalls(() => requestBadge(application, "nobody", claim));
  const command = sent?.message.command;
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
