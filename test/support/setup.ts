import { applyD1Migrations, reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import { homesOf } from "../../src/worker/homes.ts";

// Before each file: the files share a runtime, but each begins at the real time, with storage in which nothing is.
vi.useRealTimers();
await reset();
await Promise.all(homesOf(env).map(({ d1 }) => applyD1Migrations(d1, env.TEST_MIGRATIONS)));

/** What the service logs of each request stays out of the tests' output. A test that reads it spies on `console.log`. */
const IS_QUIET = Symbol.for("quiet log");
if (!Object.hasOwn(console.log, IS_QUIET)) {
  const { log } = console;
  const quiet = (...values: unknown[]): void => {
    if (!String(values[0]).startsWith('{"event":')) log(...values);
  };
  console.log = Object.assign(quiet, { [IS_QUIET]: true });
}
