import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import type { Allocator } from "../../src/worker/allocator/allocator.ts";
import { type AroundTrip, aroundD1 } from "./d1.ts";
import { bindDatabase, homeDatabase } from "./home.ts";

export const allocatorOf = ({ id }: { id: string }): DurableObjectStub<Allocator> => env.ALLOCATOR.getByName(id);

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
