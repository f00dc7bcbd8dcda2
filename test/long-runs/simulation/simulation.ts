import { Actors } from "./actors/actors.ts";
import { livesOn } from "./aftermath.ts";
import { drain } from "./drain.ts";
import { checkAtRest } from "./invariants/at-rest.ts";
import type { Breach } from "./invariants/verdict.ts";
import { allSettled } from "./platform/timeline.ts";
import { World } from "./world.ts";

/** More tasks than any seed needs: whoever comes here goes round in circles. */
const MAX_STEPS = 200_000;

export interface SeedResult {
  seed: number;
  breach: Breach | null;
  /** The last steps, oldest first. */
  trace: string[];
  /** Of all steps: the same for two runs of one seed. */
  digest: string;
  steps: number;
}

/**
 * Runs one seed. First the service is used while everything around it fails; then nothing fails any more, and all that
 * was left undone must come to an end.
 *
 * @param traceLines how many steps of the trace to keep for the result
 */
export async function simulate(seed: number, traceLines: number): Promise<SeedResult> {
  const world = new World(seed);
  const { verdict, trace, timeline } = world;
  const fail = (error: unknown) => verdict.expect(false, "no error is left over", () => describe(error));
  process.on("unhandledRejection", fail);
  try {
    await untilDone(world, live(world));
  } catch (error) {
    fail(error);
  } finally {
    process.off("unhandledRejection", fail);
    world.close();
  }
  return { seed, breach: verdict.breach, trace: trace.last(traceLines), digest: trace.digest, steps: timeline.steps };
}

/** What happens in a seed's life. */
async function live(world: World): Promise<void> {
  const { dice, faults, receivers, trace } = world;
  const actors = new Actors(world);
  await actors.arrive();
  trace.add("seed", `faults: ${faults}`);
  faults.start();
  receivers.startTrouble();
  await actors.act();
  await livesOn(world);
  trace.add("seed", "from here on nothing fails");
  faults.stop();
  receivers.stopTrouble();
  actors.mendEndpoints();
  await drain(world);
  checkAtRest(world);
  // What they would be answered follows from what is in D1; that it is so, half of the seeds try.
  if (dice.of("reunion").chance(0.5)) return;
  await actors.askAgain();
  await drain(world);
  checkAtRest(world);
}

/** Lets time pass until the life is over or a promise is broken. */
async function untilDone({ timeline, verdict }: World, life: Promise<void>): Promise<void> {
  let isOver = false;
  const end = life.finally(() => {
    isOver = true;
  });
  end.catch(() => {});
  await allSettled();
  while (!isOver && verdict.breach === null) {
    if (timeline.steps > MAX_STEPS) throw new Error("it does not come to rest");
    const isMoving = await timeline.step();
    if (!isMoving && !isOver) throw new Error("everything waits for something that never comes");
  }
  if (isOver) await end;
}

const describe = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));
