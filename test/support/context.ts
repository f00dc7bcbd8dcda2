import { env } from "cloudflare:workers";
import { type Context, createContext } from "../../src/worker/context.ts";
import { boundHome } from "./home.ts";

/** As the platform takes deferred work: if it fails, nobody is told. */
const ignoreFailure = (work: Promise<unknown>): void => void work.catch(() => {});

/** A context of a home whose deferred work nobody waits for. */
export const contextOf = (home: number): Context => createContext(env, ignoreFailure, boundHome(home));

/** A context of this file's home, as the entry makes it, with the deferred work at hand. */
export function testContext(overrides: Partial<Context> = {}): { context: Context; deferred: Promise<unknown>[] } {
  const deferred: Promise<unknown>[] = [];
  const defer = (work: Promise<unknown>) => {
    ignoreFailure(work);
    deferred.push(work);
  };
  const context = createContext(env, defer, boundHome());
  return { context: { ...context, ...overrides }, deferred };
}
