import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import type { Allocator } from "../../src/worker/allocator/allocator.ts";
import { Ledger } from "../../src/worker/allocator/ledger.ts";
import { IS_UNCONFIRMED } from "../../src/worker/allocator/ledger-tables.ts";
import { type AroundTrip, aroundD1 } from "./d1.ts";
import { bindDatabase, homeDatabase } from "./home.ts";

export const allocatorOf = ({ id }: { id: string }): DurableObjectStub<Allocator> => env.ALLOCATOR.getByName(id);

/** Runs one atomic step on an application's ledger, in its object. */
export function withLedger<T>(
  application: { id: string },
  step: (ledger: Ledger, storage: DurableObjectStorage) => T,
): Promise<T> {
  return runInDurableObject(allocatorOf(application), (_, { storage }) => step(new Ledger(storage.sql), storage));
}

/** From now on the object has these bindings instead of its own, until it ends. */
export async function bindObject(
  application: { id: string },
  bind: (state: DurableObjectState) => Partial<Env>,
): Promise<void> {
  await runInDurableObject(allocatorOf(application), (instance, state) => {
    const value = { ...Reflect.get(instance, "env"), ...bind(state) };
    Object.defineProperty(instance, "env", { value, configurable: true });
  });
}

/** From now on the object's calls to D1 go through `around`, until the object ends. */
export async function aroundObjectD1(
  application: { id: string },
  around: (state: DurableObjectState) => AroundTrip,
): Promise<void> {
  await bindObject(application, (state) => bindDatabase(aroundD1(homeDatabase(), around(state))));
}

export interface StoredLease {
  holder: string;
  number: number;
  confirmed: boolean;
}

/** An application's leases, oldest first. */
export function leasesOf(application: { id: string }): Promise<StoredLease[]> {
  return withLedger(application, (_, { sql }) =>
    sql
      .exec<{ holder: string; number: number; confirmed: number }>(
        `SELECT holder, number, NOT ${IS_UNCONFIRMED} AS confirmed FROM lease ORDER BY id`,
      )
      .toArray()
      .map(({ holder, number, confirmed }) => ({ holder, number, confirmed: confirmed === 1 })),
  );
}

/** What a test does around one call of an object's method. */
export type AroundCall = <Result>(method: string, call: () => Promise<Result>) => Promise<Result>;

/** The same namespace, with every call of an object going through `around`. */
export function aroundAllocators(around: AroundCall): DurableObjectNamespace<Allocator> {
  return new Proxy(env.ALLOCATOR, {
    get(target, name) {
      if (name !== "getByName") throw new Error(`the service does not call ${String(name)} of the namespace`);
      return (id: string) =>
        new Proxy(target.getByName(id), {
          get(stub, method) {
            return (...parameters: unknown[]) => around(String(method), () => Reflect.get(stub, method)(...parameters));
          },
        });
    },
  });
}
