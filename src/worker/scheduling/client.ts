import { type Home, objectPlace } from "../homes.ts";
import { log } from "../log.ts";

/** Lets a home's clock tick, in an invocation of its own. */
export async function callHomeClock(env: Env, home: Home): Promise<void> {
  try {
    const { locationHint, jurisdiction } = objectPlace(home);
    const namespace = jurisdiction ? env.HOME_CLOCK.jurisdiction(jurisdiction) : env.HOME_CLOCK;
    await namespace.getByName(String(home.number), locationHint && { locationHint }).tick(home.number);
  } catch (error) {
    log("error", { event: "tick-failed", home: home.number, error });
  }
}
