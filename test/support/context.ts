import { env } from "cloudflare:workers";
import { type Context, createContext } from "../../src/worker/context.ts";
import { boundHome } from "./home.ts";

/** A context of a home whose deferred work nobody waits for. */
export const contextOf = (home: number): Context => createContext(env, () => {}, boundHome(home));

/** A context of this file's home, as the entry makes it, with the deferred work at hand. */
export function testContext(overrides: Partial<Context> = {}): { context: Context; deferred: Promise<unknown>[] } {
  const deferred: Promise<unknown>[] = [];
  const context = createContext(env, (work) => deferred.push(work), boundHome());
  return { context: { ...context, ...overrides }, deferred };
}
