import { env } from "cloudflare:workers";
import { AllocatorClient } from "../../../src/worker/allocator/client.ts";
import type { Context } from "../../../src/worker/context.ts";
import { Database, type Orm } from "../../../src/worker/storage/database.ts";
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

  override run<T>(query: (orm: Orm, d1: D1Database) => Promise<T>): Promise<T> {
    return this.#intercept({ part: "D1" }, () => super.run(query));
  }

  override atPrimary<T>(query: (session: D1DatabaseSession) => Promise<T>): Promise<T> {
    return this.#intercept({ part: "D1" }, () => super.atPrimary(query));
  }

  override nearRows(...call: Parameters<Database["nearRows"]>): ReturnType<Database["nearRows"]> {
    return this.#intercept({ part: "D1" }, () => super.nearRows(...call));
  }
}

type Client = AllocatorClient;

class InterceptedAllocator extends AllocatorClient {
  readonly #intercept: Interceptor;

  constructor(intercept: Interceptor) {
    super(env.ALLOCATOR, boundHome());
    this.#intercept = intercept;
  }

  override issue(...call: Parameters<Client["issue"]>): ReturnType<Client["issue"]> {
    return this.#intercept({ part: "allocator", applicationId: call[0] }, () => super.issue(...call));
  }

  override reserve(...call: Parameters<Client["reserve"]>): ReturnType<Client["reserve"]> {
    return this.#intercept({ part: "allocator", applicationId: call[0] }, () => super.reserve(...call));
  }

  override claim(...call: Parameters<Client["claim"]>): ReturnType<Client["claim"]> {
    return this.#intercept({ part: "allocator", applicationId: call[0] }, () => super.claim(...call));
  }

  override release(...call: Parameters<Client["release"]>): ReturnType<Client["release"]> {
    return this.#intercept({ part: "allocator", applicationId: call[0] }, () => super.release(...call));
  }

  override transition(...call: Parameters<Client["transition"]>): ReturnType<Client["transition"]> {
    return this.#intercept({ part: "allocator", applicationId: call[0] }, () => super.transition(...call));
  }
}
