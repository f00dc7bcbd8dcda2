import { Actors } from "./actors/actors.ts";
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
  try {
    await untilDone(world, live(world));
  } catch (error) {
    world.verdict.expect(false, "the simulation itself does not fail", () =>
      String(error instanceof Error ? error.stack : error),
    );
  }
  const { breach } = world.verdict;
  world.close();
  const { steps } = world.timeline;
  return { seed, breach, trace: world.trace.last(traceLines), digest: world.trace.digest, steps };
}

/** What happens in a seed's life. */
async function live(world: World): Promise<void> {
  const actors = new Actors(world);
  await actors.arrive();
  world.trace.add("seed", `faults: ${world.faults}`);
  world.faults.start();
  world.receivers.startTrouble();
  await actors.act();
  world.trace.add("seed", "from here on nothing fails");
  world.faults.stop();
  world.receivers.stopTrouble();
  await drain(world);
  await checkAtRest(world);
  await actors.askAgain();
  await drain(world);
  await checkAtRest(world);
}

/** Lets time pass until the life is over or a promise is broken. */
async function untilDone(world: World, life: Promise<void>): Promise<void> {
  const { timeline, verdict } = world;
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
