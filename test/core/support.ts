import { runInDurableObject } from "cloudflare:test";
import { z } from "zod";
import { homeOf } from "../../src/shared/homes.ts";
import { type ApplicationId, newRandomId } from "../../src/shared/identifiers.ts";
import type { InboxCommand } from "../../src/shared/inbox.ts";
import { allocatorOf } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import type { AroundTrip } from "../support/d1.ts";
import { isAbout, LOST } from "../support/faults.ts";
import { boundHome, homeDatabase, runSql } from "../support/home.ts";

/** In every write of an entry, and in nothing else. */
export const ENTRY = "INSERT INTO position";

/** Requests of entries to D1 that are lost on the way, until it is told to stop. */
export class LostEntries {
  count = 0;
  #isLosing = true;

  readonly around: AroundTrip = async (statements, send) => {
    if (!this.#isLosing || !isAbout(statements, ENTRY)) return send();
    this.count++;
    throw LOST;
  };

  stop(): void {
    this.#isLosing = false;
  }
}

/** Makes the application's object look for what is due, as its home's clock does. */
export const wake = (application: { id: ApplicationId }, isToCompare = false): Promise<void> =>
  allocatorOf(application).wake(application.id, isToCompare);

/** Takes an object's storage from it, as if it had never been. */
export async function loseStorage(application: { id: ApplicationId }): Promise<void> {
  await runInDurableObject(allocatorOf(application), async (_, state) => {
    await state.storage.deleteAll();
    state.abort("its storage is lost");
  }).catch(() => {});
}

export type JournalRow = Record<string, SqlStorageValue>;

export const readJournal = ({ sql }: DurableObjectStorage): JournalRow[] =>
  sql.exec("SELECT * FROM journal_entry").toArray();

/** The object is what it was when its journal had these rows. */
export async function restoreJournal(application: { id: ApplicationId }, rows: readonly JournalRow[]): Promise<void> {
  await runInDurableObject(allocatorOf(application), async (_, state) => {
    const { sql } = state.storage;
    sql.exec("DELETE FROM journal_entry");
    for (const row of rows) sql.exec("INSERT INTO journal_entry VALUES (?, ?, ?, ?, ?)", ...Object.values(row));
    await state.storage.sync();
    state.abort("it is restored");
  }).catch(() => {});
}

const entryRows = z.array(z.object({ sequence: z.number(), body: z.string() }));

/** What the object's journal has, oldest first. */
export function journalOf(application: { id: ApplicationId }): Promise<{ sequence: number; body: string }[]> {
  return runInDurableObject(allocatorOf(application), (_, { storage }) =>
    entryRows.parse(
      storage.sql.exec("SELECT place / 64 AS sequence, body FROM journal_entry ORDER BY place").toArray(),
    ),
  );
}

const sequenceRow = z.object({ sequence: z.number() });

/** How far D1 has come. */
export async function sequenceOf({ id }: { id: ApplicationId }): Promise<number> {
  const row = await boundHome(homeOf(id))
    .d1.prepare("SELECT sequence FROM position WHERE application_id = ?1")
    .bind(id)
    .first();
  return sequenceRow.parse(row).sequence;
}

/** Puts a command where the administration script puts it. @returns its ID */
export async function putIntoInbox(
  { id }: { id: ApplicationId },
  command: InboxCommand,
  name: string | null = null,
): Promise<string> {
  const commandId = newRandomId();
  const request = JSON.stringify({ command, actor: { kind: "administrator", name } });
  await runSql(
    "INSERT INTO inbox (id, application_id, command, created_at) VALUES (?1, ?2, ?3, ?4)",
    commandId,
    id,
    request,
    Date.now(),
  );
  return commandId;
}

const resultRow = z.object({ result: z.string().nullable() });

/** What became of a command; null: it is not carried out yet. */
export async function resultOf(commandId: string): Promise<unknown> {
  const row = await homeDatabase().prepare("SELECT result FROM inbox WHERE id = ?1").bind(commandId).first();
  const { result } = resultRow.parse(row);
  return result === null ? null : JSON.parse(result);
}

/** The largest fields that a request may have, and twice as large in JSON. */
const LONGEST = '"'.repeat(256);
const METADATA = JSON.stringify({ deviceModel: LONGEST, os: LONGEST, osVersion: LONGEST, sdkVersion: LONGEST });

/** An application in which mallory has so many badges of maximal metadata, as D1 would have them. */
export async function crowded(count: number): Promise<TestApplication> {
  const application = await createApplication();
  const { id, firstNumber } = application;
  await homeDatabase().batch([
    homeDatabase()
      .prepare(
        `WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ?4)
         INSERT INTO badge (number, application_id, device, user_id, metadata, position, turn, issued_at, change, changed_at)
         SELECT 7000000000 + ?2 + n, ?1, 'device ' || n, 'mallory', ?3, n, 1, 1, n, 1 FROM place`,
      )
      .bind(id, firstNumber, METADATA, count),
    homeDatabase()
      .prepare("UPDATE position SET last_position = ?2, last_change = ?2 WHERE application_id = ?1")
      .bind(id, count),
  ]);
  return application;
}
