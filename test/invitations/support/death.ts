import type { Context } from "../../../src/worker/context.ts";
import { interceptedContext } from "./intercepted.ts";

/** Where a process dies: at its n-th call to D1 or to the allocator (from 0), before or after the call did its work. */
export interface Death {
  call: number;
  when: "before" | "after";
}

class Died extends Error {}

/**
 * Runs an act in a process that dies. Nothing of it works after that, and nobody learns of it.
 *
 * @returns whether it died before the act and all that it deferred was over
 */
export async function runDying(death: Death, act: (context: Context) => Promise<unknown>): Promise<boolean> {
  let calls = 0;
  let isDead = false;
  const die = (): never => {
    isDead = true;
    throw new Died();
  };
  const deferred: Promise<unknown>[] = [];
  const context = interceptedContext(
    async (_, call) => {
      const isLast = calls++ === death.call;
      if (isDead || (isLast && death.when === "before")) die();
      const result = await call();
      return isLast ? die() : result;
    },
    { defer: (work) => deferred.push(work) },
  );
  try {
    await act(context);
  } catch (error) {
    if (!isDead) throw error;
  }
  await Promise.allSettled(deferred);
  return isDead;
}

/** Every way in which an act can die, one after the other, until it survives. */
export async function forEveryDeath(run: (death: Death) => Promise<boolean>): Promise<number> {
  for (let call = 0; ; call++) {
    for (const when of ["before", "after"] as const) {
      if (!(await run({ call, when }))) return call;
    }
  }
}
