import { type Home, objectOf } from "../homes.ts";
import { log } from "../log.ts";
import type { HomeScheduler } from "./home-scheduler.ts";

/** Lets a home's scheduler tick, in an invocation of its own. */
export async function tickHome(env: Env, home: Home): Promise<void> {
  try {
    await stubOf(env, home).tick(home.number);
  } catch (error) {
    log("error", { event: "tick-failed", home: home.number, error });
  }
}

/** Makes a home's scheduler carry out commands of the script. @throws the object's errors; the next tick retries */
export const wakeHomeScheduler = (env: Env, home: Home): Promise<void> => stubOf(env, home).wake(home.number);

const stubOf = (env: Env, home: Home): DurableObjectStub<HomeScheduler> =>
  objectOf(env.HOME_SCHEDULER, home, String(home.number));
