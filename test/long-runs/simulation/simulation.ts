import { Actors } from "./actors/actors.ts";
import { liveOn } from "./actors/aftermath.ts";
import { restoreD1 } from "./actors/restoration.ts";
import { checkAtRest } from "./invariants/at-rest.ts";
import type { Breach } from "./invariants/verdict.ts";
import { allSettled } from "./platform/timeline.ts";
import { World } from "./world.ts";

/** More tasks than any seed needs: whoever comes here goes round in circles. */
const MAX_STEPS = 200_000;
/** Rounds in which everything that is due gets done; each has time for one attempt of every event. */
const MAX_DRAIN_ROUNDS = 60;
const MINUTE = 60_000;

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
  const fail = (error: unknown) => {
    verdict.expect(false, "no error is left over", error instanceof Error ? error.stack : String(error));
  };
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
  const { dice, faults, trace } = world;
  const actors = new Actors(world);
  await actors.arrive();
  trace.add("seed", `faults: ${faults}`);
  faults.isOn = true;
  const isCopied = world.plan.restoredHome === null ? null : copySometime(world, world.plan.restoredHome);
  await actors.act();
  await liveOn(world);
  trace.add("seed", "from here on nothing fails");
  faults.isOn = false;
  actors.fixEndpoints();
  await drain(world);
  checkAtRest(world);
  await actors.follow();
  const { restoredHome } = world.plan;
  if (restoredHome !== null && isCopied?.()) return liveAfterRestoration(world, actors, restoredHome);
  // What they would be answered follows from what is in D1; that it is so, half of the seeds try.
  if (dice.of("reunion").chance(0.5)) return;
  await actors.askAgain();
  await drain(world);
  checkAtRest(world);
  await actors.follow();
}

/** @returns tells whether that moment of the seed's life has come */
function copySometime({ dice, timeline, plan, d1, trace }: World, home: number): () => boolean {
  let isCopied = false;
  const own = dice.of("copy");
  timeline.after(own.below(plan.acts * plan.thinkMilliseconds), () => {
    trace.add("seed", `D1 of home ${home} is copied`);
    d1.at(home).copy();
    isCopied = true;
  });
  return () => isCopied;
}

/** The D1 of one home is restored to the copy, nobody runs `reconcile`, and everybody goes on while things fail again. */
async function liveAfterRestoration(world: World, actors: Actors, home: number): Promise<void> {
  const { faults, timeline, isolates, trace } = world;
  restoreD1(world, home);
  faults.isOn = true;
  await actors.act();
  trace.add("seed", "from here on nothing fails again");
  faults.isOn = false;
  for (let sweeps = 0; sweeps < 2; sweeps++) {
    await timeline.sleep(MINUTE);
    await isolates.sweep();
  }
  await drain(world);
  checkAtRest(world);
  await actors.follow();
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

/** Lets time pass, with its sweeps, until nothing is left to do. */
async function drain(world: World): Promise<void> {
  const { timeline, isolates, trace, verdict } = world;
  for (let round = 0; round < MAX_DRAIN_ROUNDS; round++) {
    await timeline.rest();
    const left = leftOver(world);
    if (left.length === 0) return;
    const due = Math.min(...left.map((row) => Number(row.due)));
    await timeline.sleep(Math.max(0, due - timeline.now) + MINUTE);
    trace.add("seed", "sweep");
    await isolates.sweep();
  }
  verdict.expect(false, "all that was left undone comes to an end", leftOver(world));
}

/** What only the sweep does, and when it is due, in milliseconds. */
const leftOver = ({ d1 }: World) =>
  d1.look(`
    SELECT 'event' AS what, id, max(due_at, lease_until) AS due FROM webhook_event WHERE state = 'pending'
    UNION ALL
    SELECT 'held event', webhook_event.id, 0 FROM webhook_event JOIN application ON application.id = application_id
      WHERE state = 'held' AND webhook_held_at IS NULL
    UNION ALL
    SELECT 'invitation', digest, expires_at_time FROM invitation WHERE state = 'pending'
    UNION ALL
    SELECT 'block', user_id, blocked_at + 10000 FROM blocked_user WHERE is_revoking = 1
    UNION ALL
    SELECT 'badge', number, expires_at FROM badge
      WHERE expires_at IS NOT NULL AND ended_at IS NULL AND position IS NOT NULL
    UNION ALL
    SELECT 'number', digest, 0 FROM invitation WHERE state IN ('revoked', 'expired') AND released_at IS NULL`);
