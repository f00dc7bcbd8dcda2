import { runInDurableObject } from "cloudflare:test";
import { eq, getTableColumns, getTableName } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { expect } from "vitest";
import { z } from "zod";
import type { BadgeState } from "../../src/shared/badge-lifecycle/states.ts";
import { homeOf } from "../../src/shared/homes.ts";
import { type ApplicationId, newRandomId } from "../../src/shared/identifiers.ts";
import { INITIAL_HEAD } from "../../src/shared/initial-head.ts";
import { applicationHead } from "../../src/shared/schema.ts";
import { type AllocatorCommand, type ScriptResult, scriptResult } from "../../src/shared/script-commands.ts";
import * as tables from "../../src/worker/allocator/tables/schema.ts";
import { getBadge } from "../badges/life-support.ts";
import { requestQuietly } from "../badges/support.ts";
import { allocatorOf, aroundObjectD1, takeOver, wake } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import type { AroundTrip } from "../support/d1.ts";
import { isAbout, LOST } from "../support/faults.ts";
import { boundHome, homeDatabase, runSql } from "../support/home.ts";
import type { Answer } from "../support/http.ts";
import { restore, type Snapshot } from "../support/restoration.ts";
import { countBadges } from "../support/rows.ts";

/** In every batch that moves D1's head, and in nothing else. */
export const ENTRY = "INSERT INTO application_head";

/** Handles the allocator's next batch that has this text, or a later one, in its own way; all others go through. */
export async function aroundNext(application: TestApplication, text: string, around: AroundTrip, place = 1) {
  let found = 0;
  await aroundObjectD1(application, () => (statements, send) => {
    if (!isAbout(statements, text) || ++found !== place) return send();
    return around(statements, send);
  });
}

export const aroundNextEntry = (application: TestApplication, around: AroundTrip) =>
  aroundNext(application, ENTRY, around);

/** D1 carries a batch out, and its response is lost. */
export const loseResponse: AroundTrip = async (_, send) => {
  await send();
  throw LOST;
};

/** D1 is restored, and the scheduler tells the allocator. */
export async function restoreAndTell(application: { id: ApplicationId }, snapshot: Snapshot): Promise<void> {
  await restore(application, snapshot);
  await wake(application, true);
}

export const login = (application: TestApplication, udid: string, userId = "alice"): Promise<Answer> =>
  requestQuietly(application, udid, { userId });

export const stateOf = async (application: TestApplication, number: string): Promise<unknown> =>
  (await getBadge(application, number)).body.state;

/** What D1's head of an application is. */
export async function headOf({ id }: { id: ApplicationId }): Promise<typeof applicationHead.$inferSelect> {
  const { d1 } = boundHome(homeOf(id));
  const head = await drizzle(d1).select().from(applicationHead).where(eq(applicationHead.applicationId, id)).get();
  if (!head) throw new Error("the application has no head");
  return head;
}

/** How far D1 has come. */
export const sequenceOf = async (application: { id: ApplicationId }): Promise<number> =>
  (await headOf(application)).sequence;

/** Sequence numbers of the entries in the allocator's log, oldest first. */
export const loggedSequences = (application: { id: ApplicationId }): Promise<number[]> =>
  runInDurableObject(allocatorOf(application), (_, { storage }) =>
    storage.sql
      .exec("SELECT sequence FROM entry ORDER BY sequence")
      .toArray()
      .map(({ sequence }) => Number(sequence)),
  );

const OWN_TABLES = [tables.badge, tables.invitation, tables.blockedUser, tables.freedNumber];

/**
 * When all is quiet, D1 has the allocator's rows and no others, and the head counts them (contract sections 19 and 21): every test
 * of a restore ends with this.
 */
export async function expectInSync(application: { id: ApplicationId }): Promise<void> {
  const { id } = application;
  const selects = OWN_TABLES.map((table) => {
    const columns = Object.values(getTableColumns(table)).map((column) => column.name);
    return { from: `SELECT ${columns} FROM ${getTableName(table)}`, order: `ORDER BY ${columns[0]}` };
  });
  const own = await runInDurableObject(allocatorOf(application), (_, { storage }) =>
    selects.map(({ from, order }) => storage.sql.exec(`${from} ${order}`).toArray()),
  );
  const stored = await homeDatabase().batch(
    selects.map(({ from, order }) => homeDatabase().prepare(`${from} WHERE application_id = ?1 ${order}`).bind(id)),
  );
  expect(stored.map(({ results }) => results)).toEqual(own);
  const { statistics, readableFrom, sequence, refused } = await headOf(application);
  expect({ readableFrom, refused }).toEqual({ readableFrom: 0, refused: [] });
  expect((await loggedSequences(application)).at(-1)).toBe(sequence);
  expect(await countRows(id)).toEqual({ ...statistics, newBadges: undefined });
}

const RECORDED_STATE = "iif(ended_at IS NOT NULL AND state IN ('active', 'suspended'), 'expired', state)";

/** What the allocator counts, counted in D1. */
const COUNTS = `SELECT
  (SELECT json_group_object(state, n) FROM (SELECT ${RECORDED_STATE} AS state, count(*) AS n FROM badge
    WHERE application_id = ?1 AND ordinal IS NOT NULL GROUP BY 1)) AS badges,
  (SELECT json_group_object(state, n) FROM (SELECT state, count(*) AS n FROM invitation
    WHERE application_id = ?1 GROUP BY 1)) AS invitations,
  (SELECT count(*) FROM badge WHERE application_id = ?1 AND superseded_at IS NOT NULL) AS retired,
  (SELECT count(*) FROM freed_number WHERE application_id = ?1) AS freed`;
const countRow = z.object({ badges: z.string(), invitations: z.string(), retired: z.number(), freed: z.number() });

async function countRows(id: string): Promise<object> {
  const row = countRow.parse(await homeDatabase().prepare(COUNTS).bind(id).first());
  const { badges, invitations } = INITIAL_HEAD.statistics;
  return {
    ...row,
    badges: { ...badges, ...JSON.parse(row.badges) },
    invitations: { ...invitations, ...JSON.parse(row.invitations) },
  };
}

/** Puts a command where the administration script puts it. @returns its ID */
export async function putCommand(
  { id }: { id: ApplicationId },
  command: AllocatorCommand,
  name: string | null = null,
): Promise<string> {
  const commandId = newRandomId();
  const request = JSON.stringify({ command, actor: { kind: "administrator", name } });
  const insert =
    "INSERT INTO script_command (id, recipient, command, created_at) VALUES (?1, ?2, ?3, unixepoch() * 1000)";
  await runSql(insert, commandId, id, request);
  return commandId;
}

const resultRow = z.object({ result: z.string().nullable() });

/** What became of a command; null: it is not carried out yet. */
export async function resultOf(commandId: string): Promise<unknown> {
  const row = await homeDatabase().prepare("SELECT result FROM script_command WHERE id = ?1").bind(commandId).first();
  const { result } = resultRow.parse(row);
  return result === null ? null : JSON.parse(result);
}

/** `reconcile ID` of the script, carried out. */
export async function reconcile(
  application: { id: ApplicationId },
  options: { verify?: boolean; republish?: boolean; skip?: number } = {},
): Promise<ScriptResult> {
  const command = { kind: "reconcile", verify: false, republish: false, skip: 0, ...options } as const;
  const commandId = await putCommand(application, command);
  await wake(application);
  return scriptResult.parse(await resultOf(commandId));
}

/** D1 has another application's badge with this number: planted, or the register of ranges went wrong. */
export const plantForeign = (number: number | string): Promise<D1Result> =>
  runSql("INSERT OR REPLACE INTO badge (number, application_id) VALUES (?1, 'app_foreign')", Number(number));

/** The largest fields that a request may have, and twice as large in JSON. */
const LONGEST = '"'.repeat(256);
const METADATA = JSON.stringify({ deviceModel: LONGEST, os: LONGEST, osVersion: LONGEST, sdkVersion: LONGEST });

interface Filling {
  userId?: string;
  columns?: Record<string, string | number | null> & { state?: BadgeState };
  /** Whether the allocator has taken them over: false if more rows follow. */
  isTakenOver?: boolean;
}

/**
 * Badges in D1 before the application's first call, which its allocator takes over: of one user, on a device each, with maximal
 * metadata unless other columns are given.
 */
export async function fillBadges(
  application: TestApplication,
  count: number,
  { userId = "mallory", columns = {}, isTakenOver = true }: Filling = {},
): Promise<void> {
  const row = {
    metadata: METADATA,
    signing_key_id: 1,
    event_id: "evt_",
    issued_at: 1,
    changed_at: 1,
    login_sequence: 1,
    ...columns,
  };
  const names = Object.keys(row);
  await homeDatabase().batch([
    homeDatabase()
      .prepare(
        `WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ?3)
         INSERT INTO badge (number, application_id, device, user_id, ordinal, change, ${names})
         SELECT ?2 - 1 + n, ?1, 'device ' || n, ?4, n, n, ${names.map((_, index) => `?${index + 5}`)} FROM place`,
      )
      .bind(application.id, application.firstNumber, count, userId, ...Object.values(row)),
    countBadges(application, count, columns.state),
  ]);
  if (isTakenOver) await takeOver(application);
}

/** An application in which mallory has so many badges of maximal metadata. */
export async function crowded(count: number, filling: Filling = {}): Promise<TestApplication> {
  const application = await createApplication({ size: count + 10_000 });
  await fillBadges(application, count, filling);
  return application;
}
