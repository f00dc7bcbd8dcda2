import { env } from "cloudflare:workers";
import { AllocatorClient } from "../../../src/worker/allocator/allocator-client.ts";
import type { Context } from "../../../src/worker/context.ts";
import { Database } from "../../../src/worker/storage/database.ts";
import type { Statement } from "../../../src/worker/storage/statement.ts";
import { testContext } from "../../support/context.ts";
import { boundHome, homeDatabase } from "../../support/home.ts";

/** Stands around every call that a context makes to D1 or to an application's object. */
export type Interceptor = <T>(
  target: { part: "D1" } | { part: "allocator"; applicationId: string },
  call: () => Promise<T>,
) => Promise<T>;

/** A context whose calls go through an interceptor. */
export function interceptedContext(intercept: Interceptor, overrides: Partial<Context> = {}): Context {
  const db = new InterceptedDatabase(intercept);
  const allocator = new InterceptedAllocator(intercept);
  return testContext({ db, allocator, ...overrides }).context;
}

class InterceptedDatabase extends Database {
  readonly #intercept: Interceptor;

  constructor(intercept: Interceptor) {
    super(homeDatabase());
    this.#intercept = intercept;
  }

  override run<T>(query: (d1: D1Database) => Promise<T>): Promise<T> {
    return this.#intercept({ part: "D1" }, () => super.run(query));
  }

  override atPrimary<T>(query: (session: D1DatabaseSession) => Promise<T>): Promise<T> {
    return this.#intercept({ part: "D1" }, () => super.atPrimary(query));
  }

  override allAtNearest<Values, Row>(
    statement: Statement<Values, Row>,
    values: Values,
    bookmark: string | null,
  ): Promise<{ rows: Row[]; isPrimary: boolean }> {
    return this.#intercept({ part: "D1" }, () => super.allAtNearest(statement, values, bookmark));
  }
}

class InterceptedAllocator extends AllocatorClient {
  readonly #intercept: Interceptor;

  constructor(intercept: Interceptor) {
    super(env.ALLOCATOR, boundHome());
    this.#intercept = intercept;
  }

  override execute(...call: Parameters<AllocatorClient["execute"]>): ReturnType<AllocatorClient["execute"]> {
    return this.#intercept({ part: "allocator", applicationId: call[1] }, () => super.execute(...call));
  }

  override wake(...call: Parameters<AllocatorClient["wake"]>): ReturnType<AllocatorClient["wake"]> {
    return this.#intercept({ part: "allocator", applicationId: call[0] }, () => super.wake(...call));
  }
}
