import { getTableName } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Database } from "../../../src/admin/platform/database.ts";
import { type Home, Homes } from "../../../src/admin/platform/homes.ts";
import {
  application,
  applicationHead,
  applicationSecret,
  numberRange,
  scriptCommand,
  sealingKey,
  signingKey,
} from "../../../src/shared/schema.ts";
import { byEffort } from "../../support/effort.ts";
import type { RegisterInProcess } from "./register.ts";

/** Called for each step of the work on any home, with the step's number from 1 and what takes it. */
type AroundStep = <T>(step: number, take: () => Promise<T>) => Promise<T>;

/** The same homes, with something around every step that is taken in them. */
export function aroundSteps(homes: Homes, around: AroundStep): { homes: Homes; steps(): number } {
  let taken = 0;
  const wrap = (home: Home): Home => {
    const run: Database["run"] = (work) => {
      taken += 1;
      return around(taken, () => home.database.run(work));
    };
    const get = (target: Database, name: string | symbol) => (name === "run" ? run : Reflect.get(target, name));
    return { ...home, database: new Proxy(home.database, { get }) };
  };
  return { homes: new Homes([wrap(homes.first), ...homes.others.map(wrap)]), steps: () => taken };
}

/** Where something happens to a command for the first time: the two steps before its third one only read. */
export const FIRST_STEP = byEffort(3, 1);

/** Homes in which something else happens right before one step. */
export const interruptHomes = (step: number, homes: Homes, meanwhile: () => Promise<unknown>) =>
  aroundSteps(homes, async (number, take) => {
    if (number === step) await meanwhile();
    return take();
  });

/** Homes in which a command dies right after a step: nothing of the steps behind it is done. */
export const killIn = (step: number, homes: Homes) =>
  aroundSteps(homes, async (number, take) => {
    if (number > step) throw new Error("killed");
    const result = await take();
    if (number === step) throw new Error("killed");
    return result;
  });

/** Of an application, in the order in which it can be deleted. */
const TABLES = [numberRange, applicationHead, applicationSecret, signingKey, application] as const;

const deleteAll = ({ database }: Home, tables: readonly SQLiteTable[]) =>
  database.run((_, d1) => d1.batch(tables.map((table) => d1.prepare(`DELETE FROM ${getTableName(table)}`))));

/** Deletes what a test has made, in every home and in the register of numbers. The sealing keys stay. */
export async function clearHomes(homes: Homes, register: RegisterInProcess): Promise<void> {
  await homes.map((home) => deleteAll(home, [scriptCommand, ...TABLES]));
  register.lose();
}

/** Remembers what a home has. @returns a function that restores the home to it, as D1's Time Travel does */
export async function rememberHome(home: Home): Promise<() => Promise<void>> {
  const { database } = home;
  const tables = await Promise.all(
    [...TABLES, sealingKey].map(async (table) => ({
      table,
      rows: await database.run((orm) => orm.select().from(table)),
    })),
  );
  return async () => {
    await deleteAll(home, [...TABLES, sealingKey]);
    for (const { table, rows } of tables.toReversed()) {
      for (const row of rows) await database.run((orm) => orm.insert(table).values(row));
    }
  };
}
