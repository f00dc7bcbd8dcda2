import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import type { Allocator } from "../../src/worker/allocator/allocator.ts";
import { type AroundTrip, aroundD1 } from "./d1.ts";
import { bindDatabase, homeDatabase } from "./home.ts";

export const allocatorOf = ({ id }: { id: string }): DurableObjectStub<Allocator> => env.ALLOCATOR.getByName(id);

/** Has the allocator carry out the script's commands. @param isInDoubt after a restore of D1: then it compares itself first */
export const wake = async ({ id }: { id: ApplicationId }, isInDoubt = false): Promise<void> =>
  await allocatorOf({ id }).wake(id, isInDoubt);

/**
 * Has the allocator take over rows that a test has written into D1 before the application's first call. Calls of the same
 * millisecond are decided, too: no instance before this one can have decided them.
 */
export async function takeOver(application: { id: ApplicationId }): Promise<void> {
  await wake(application);
  await runInDurableObject(allocatorOf(application), (_, { storage }) => {
    storage.sql.exec("UPDATE allocator SET copied_at = 0 WHERE copied_at IS NOT NULL");
  });
}

/** When the allocator's alarm is set for, in milliseconds; null: it is not set. */
export const alarmOf = (application: { id: string }): Promise<number | null> =>
  runInDurableObject(allocatorOf(application), (_, { storage }) => storage.getAlarm());

/** What the allocator's alarm does, whenever it is set for: where time stands still, the platform's own clock runs on. */
export const ring = (application: { id: string }): Promise<void> =>
  runInDurableObject(allocatorOf(application), (allocator) => allocator.alarm());

/** The allocator ends; its storage stays. */
export const endAllocator = (application: { id: string }): Promise<void> =>
  runInDurableObject(allocatorOf(application), (_, state) => state.abort("the allocator ends")).catch(() => {});

/** The allocator loses its storage, as when the Worker is deleted. */
export async function loseStorage(application: { id: string }): Promise<void> {
  await runInDurableObject(allocatorOf(application), async (_, state) => {
    await state.storage.deleteAll();
    await state.storage.deleteAlarm();
    state.abort("its storage is lost");
  }).catch(() => {});
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

/** What a test does around one call of a method of an application's object. */
export type AroundCall = <Result>(method: string, call: () => Promise<Result>, id: string) => Promise<Result>;

/** The same namespace, with every call of an object going through `around`. */
export function aroundAllocators(around: AroundCall): DurableObjectNamespace<Allocator> {
  return new Proxy(env.ALLOCATOR, {
    get(target, name) {
      if (name !== "getByName") throw new Error(`the service does not call ${String(name)} of the namespace`);
      return (id: string) =>
        new Proxy(target.getByName(id), {
          get(stub, method) {
            return (...parameters: unknown[]) =>
              around(String(method), () => Reflect.get(stub, method)(...parameters), id);
          },
        });
    },
  });
}
