import { Actors } from "./actors/actors.ts";
import { liveOn, liveThroughRestorations } from "./actors/phases.ts";
import { checkAtRest } from "./invariants/at-rest.ts";
import { loadLimits } from "./limits.ts";
import { HOUR, MINUTE } from "./plan.ts";
import type { Row } from "./platform/sqlite.ts";
import { World } from "./world.ts";

const setLimits = await loadLimits();

/** Rounds in which everything that is due gets done; each has time for one attempt of every event. */
const MAX_DRAIN_ROUNDS = 60;

/**
 * Runs one seed. First the service is used while everything around it fails; then nothing fails any more, and all that
 * was left undone must come to an end.
 */
export function simulate(seed: number) {
  const world = new World(seed);
  const limits = setLimits(world.dice.of("limits"));
  world.trace.add("seed", `limits: ${JSON.stringify(limits)}`);
  return world.run(() => live(world));
}

async function live(world: World): Promise<void> {
  const { dice, faults, trace, plan } = world;
  const actors = new Actors(world);
  await actors.arrive();
  trace.add("seed", `faults: ${JSON.stringify(faults.rates)}`);
  faults.isOn = true;
  await actors.act();
  await liveOn(world);
  trace.add("seed", "from here on nothing fails");
  faults.isOn = false;
  actors.fixEndpoints();
  await comeToRest(world, actors);
  for (let round = 0; round < plan.restorations; round++) {
    await liveThroughRestorations(world, actors, round);
    await comeToRest(world, actors);
  }
  // What they would be answered follows from what is in D1; that it is so, half of the seeds try.
  if (dice.of("reunion").chance(0.5)) return;
  await actors.askAgain();
  await comeToRest(world, actors);
}

async function comeToRest(world: World, actors: Actors): Promise<void> {
  const { timeline, isolates, plan, administrator } = world;
  // Until then the objects of these applications compare themselves for ever.
  while (plan.applications.map((application) => administrator.goOnRepublishing(application)).includes(true)) {
    await isolates.sweep();
    await timeline.sleep(MINUTE);
  }
  await drain(world);
  checkAtRest(world);
  await actors.follow();
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
const LEFT_OVER = [
  `'event' AS what, id, max(coalesce(due_at, created_at), lease_until) AS due FROM webhook_event
    WHERE state = 'pending'`,
  `'held event', webhook_event.id, 0 FROM webhook_event JOIN application ON application.id = application_id
    WHERE state = 'held' AND webhook_held_at IS NULL AND webhook_url IS NOT NULL`,
  "'invitation', digest, expires_at_time FROM invitation WHERE state = 'pending'",
  `'badge', number, expires_at FROM badge
    WHERE expires_at IS NOT NULL AND ended_at IS NULL AND ordinal IS NOT NULL`,
  "'command', id, created_at FROM script_command WHERE result IS NULL",
];

const leftOver = ({ d1, timeline }: World) => {
  // Older commands are ignored (src/worker/storage/command-rows.ts).
  const isKept = (row: Row) => row.what !== "command" || Number(row.due) > timeline.now - HOUR;
  return d1.look(LEFT_OVER.map((rows) => `SELECT ${rows}`).join(" UNION ALL ")).filter(isKept);
};
