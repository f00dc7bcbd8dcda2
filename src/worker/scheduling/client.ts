import { type Home, objectPlace } from "../homes.ts";
import { log } from "../log.ts";
import type { HomeClock } from "./home-clock.ts";

/** Makes a home's scheduler tick, in an invocation of its own. */
export async function callHomeClock(env: Env, home: Home): Promise<void> {
  try {
    await stubOf(env, home).tick(home.number);
  } catch (error) {
    log("error", { event: "tick-failed", home: home.number, error });
  }
}

/** Makes a home's scheduler carry out commands of the script. @throws the object's errors; the next tick retries */
export const wakeHomeClock = (env: Env, home: Home): Promise<void> => stubOf(env, home).wake(home.number);

function stubOf(env: Env, home: Home): DurableObjectStub<HomeClock> {
  const { locationHint, jurisdiction } = objectPlace(home);
  const namespace = jurisdiction ? env.HOME_CLOCK.jurisdiction(jurisdiction) : env.HOME_CLOCK;
  return namespace.getByName(String(home.number), locationHint && { locationHint });
}
