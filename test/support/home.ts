import { env } from "cloudflare:workers";
import { expect, inject } from "vitest";
import { databaseBindingOf } from "../../src/shared/homes.ts";
import { findHome, type Home } from "../../src/worker/homes.ts";

/** Which home a file's applications live in: `TEST_HOME` of the environment, which vitest.config.ts reads. */
type TestHome = "1" | "2" | "by file";

declare module "vitest" {
  interface ProvidedContext {
    home: TestHome;
  }
}

/** The home of this file's applications (contract section 17): by the file's name, so that every run has both. */
export function testHome(): number {
  const home = inject("home");
  return home === "by file" ? 1 + (sumOf(expect.getState().testPath ?? "") % 2) : Number(home);
}

/** The name alone decides, wherever the project's folder is. */
const sumOf = (path: string): number =>
  Array.from(path.slice(path.lastIndexOf("/test/"))).reduce((sum, letter) => sum + letter.charCodeAt(0), 0);

export function boundHome(number = testHome()): Home {
  const home = findHome(env, number);
  if (!home) throw new Error(`${databaseBindingOf(number)} is not bound`);
  return home;
}

/** The D1 of this file's applications. */
export const homeDatabase = (): D1Database => boundHome().d1;

/** Changes the D1 of this file's applications by one statement with these values. */
export const runSql = (sql: string, ...values: unknown[]): Promise<D1Result> =>
  homeDatabase()
    .prepare(sql)
    .bind(...values)
    .run();

/** Binds another D1 in the place of theirs. */
export const bindDatabase = (d1: D1Database): Partial<Env> => ({ [databaseBindingOf(testHome())]: d1 });
