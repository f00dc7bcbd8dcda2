import { runInDurableObject } from "cloudflare:test";
import { vi } from "vitest";
import { z } from "zod";
import { SUBSCRIBABLE_EVENTS } from "../../src/shared/events.ts";
import { Allocator } from "../../src/worker/allocator/allocator.ts";
import type { CallMessage, CallOutcome } from "../../src/worker/allocator/commands.ts";
import { boundPhone } from "../bound/support.ts";
import { claim, invite, requestInvitation, revoke } from "../invitations/support/calls.ts";
import { ahead, HOUR, MINUTE, moveClock } from "../invitations/support/clock.ts";
import { allocatorOf, bindObject, endAllocator, ring, wake } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { call, requestBadge, serverHeaders } from "../support/http.ts";
import { plantForeign, putCommand, reconcile } from "./support.ts";

const row = z.record(z.string(), z.union([z.string(), z.number(), z.null()]));

/** What a release keeps in an allocator's storage, and the messages that its Worker sent there. */
export const releaseRecord = z.object({
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
export type ReleaseRecord = z.infer<typeof releaseRecord>;

/** The file of a record, with one statement, row or call a line. */
export function textOf({ schema, storage, calls, ...rest }: ReleaseRecord): string {
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
export const NUMBER = /\b7654\d{6}\b/g;

/** Has this release do one of everything: each command of the Worker, and each kind of change that an entry may have. */
export async function recordRelease(): Promise<ReleaseRecord> {
  const events = SUBSCRIBABLE_EVENTS.join();
  const application = await createApplication({
    ...{ firstNumber: FIRST_NUMBER, lastNumber: FIRST_NUMBER + 99 },
    reuseAfterSeconds: 0,
    ...{ webhookUrl: "https://hooks.example/badges", webhookHeldAt: 1, events },
  });
  const calls: ReleaseRecord["calls"] = [];
  const decide = Allocator.prototype.call;
  const spy = vi.spyOn(Allocator.prototype, "call").mockImplementation(async function (this: Allocator, id, message) {
    const reply = await decide.call(this, id, message);
    calls.push(structuredClone({ message, outcome: reply.outcome }));
    return reply;
  });
  await wake(application);
  const head = await homeDatabase()
    .prepare("SELECT * FROM application_head WHERE application_id = ?1")
    .bind(application.id)
    .first();
  await doEverything(application);
  spy.mockRestore();
  await doWithoutCalls(application);
  const { id, firstNumber, lastNumber } = application;
  const stored = await runInDurableObject(allocatorOf(application), (_, { storage: { sql } }) => {
    const tables = z
      .array(z.object({ name: z.string(), type: z.string(), sql: z.string() }))
      .parse(
        sql
          .exec(
            "SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\'",
          )
          .toArray(),
      )
      .filter(({ name }) => !name.startsWith("sqlite_"));
    const names = tables.filter(({ type }) => type === "table").map(({ name }) => name);
    return {
      schema: tables.map((each) => each.sql),
      storage: Object.fromEntries(names.map((name) => [name, sql.exec(`SELECT * FROM "${name}"`).toArray()])),
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

/** What the clock brings, and what becomes of a number that D1 refuses: no Worker calls for either. */
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
export function formOf({ schema, storage, calls }: ReleaseRecord): object {
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
