import { homeOf } from "../../../../src/shared/homes.ts";
import type { Dice } from "../../dice.ts";
import { type ApplicationPlan, HOUR, MINUTE, type Plan } from "../plan.ts";
import type { World } from "../world.ts";
import type { Actors } from "./actors.ts";

/** How long it may take until everything is there again, in milliseconds: it is noticed within two minutes. */
const NOTICED_MILLISECONDS = 3 * MINUTE;

/**
 * Everybody goes on while things fail, and meanwhile the D1 of a home is restored to any earlier moment, forward again, twice, or
 * an object is restored or lost. Nobody runs `reconcile`, and in the end nothing is lost (contract section 21). What both sides
 * forget before they compare is, so a round has restorations of one kind.
 */
export async function liveThroughRestorations(world: World, actors: Actors, round: number): Promise<void> {
  const { faults, timeline, isolates, trace, plan } = world;
  const dice = world.dice.of(`restorations ${round}`);
  const kind = kindOfRound(dice, plan);
  if (kind === "ancient") return restoreAncient(world, dice);
  const isOfObjects = kind === "lost";
  // What was on its way to D1 when an object lost what it knew of it has arrived.
  await isolates.sweep();
  faults.isOn = true;
  const done = actors.act();
  const span = dice.oneOf([50, plan.thinkMilliseconds, plan.acts * plan.thinkMilliseconds, 3 * MINUTE]);
  for (let count = dice.between(1, 3); count > 0; count--) {
    await timeline.sleep(dice.below(span));
    if (isOfObjects) loseOne(world, dice);
    else restoreOne(world, dice);
  }
  await done;
  trace.add("seed", "from here on nothing fails again");
  faults.isOn = false;
  for (let waited = 0; waited < NOTICED_MILLISECONDS; waited += MINUTE) {
    await timeline.sleep(MINUTE);
    await isolates.sweep();
  }
  if (isOfObjects) await compareAll(world);
}

/** What a round of restorations has. */
export function kindOfRound(dice: Dice, { forgetful }: Plan): "ancient" | "lost" | "restored" {
  if (dice.chance(0.12)) return "ancient";
  return forgetful && dice.chance(0.4) ? "lost" : "restored";
}

function loseOne({ plan, objects }: World, dice: Dice): void {
  const application = dice.pick(plan.applications);
  if (application) objects.lose(application.id);
}

/** Time Travel goes back for 30 days, and the log one day more. */
const KEPT_MILLISECONDS = 30 * 24 * HOUR;

/** To one of the last moments, or to any; since objects forgot something, not to one before that. */
function restoreOne({ plan, timeline, d1, trace, history, replica, faults }: World, dice: Dice): void {
  const application = dice.pick(plan.applications);
  if (!application) return;
  const home = homeOf(application.id);
  const server = d1.at(home);
  const moments = server.position - server.earliestSince(timeline.now - KEPT_MILLISECONDS);
  const position = server.position - dice.below(dice.chance(0.5) ? Math.min(moments, 10) : moments);
  trace.add("seed", `D1 of home ${home} is restored to commit ${position} of ${server.position}`);
  faults.struck++;
  server.restore(position);
  history.restored(home);
  replica.restored(home);
}

/** Until then a restoration of D1 could make both sides forget the same. */
async function compareAll({ plan, isolates, d1 }: World): Promise<void> {
  await isolates.enter(async (contextOf) => {
    for (const { id } of plan.applications) await contextOf(homeOf(id)).allocator.wake(id, true);
  });
  for (const { id } of plan.applications) d1.of(id).keepFrom();
}

/** How old what the log has no more is then: commands that old are not carried out again. */
const ANCIENT_MILLISECONDS = 2 * HOUR;
/** More than an alarm, a comparison and a tick take. */
const NOTICED_BY_ALL_MILLISECONDS = 5 * MINUTE;

/**
 * D1 is restored to a moment before the log begins. Nobody overwrites anything until an administrator has it republished (contract
 * section 21); meanwhile everybody goes on in vain.
 */
async function restoreAncient(world: World, dice: Dice): Promise<void> {
  const { timeline, plan, objects, d1, trace, history, replica, faults, isolates, administrator } = world;
  const application = dice.pick(plan.applications);
  const stored = application && objects.get(application.id);
  if (!application || !stored) return;
  await timeline.sleep(ANCIENT_MILLISECONDS);
  await isolates.sweep();
  objects.evict(application.id);
  stored.sqlite.run("DELETE FROM entry WHERE sequence < (SELECT max(sequence) FROM entry)");
  const home = homeOf(application.id);
  const server = d1.at(home);
  const position = server.position - 1 - dice.below(server.position - server.earliest);
  trace.add(
    "seed",
    `the log of ${application.id} begins anew, and D1 is restored to commit ${position} of ${server.position}`,
  );
  faults.struck++;
  server.restore(Math.max(server.earliest, position));
  history.restored(home);
  replica.restored(home);
  faults.isOn = dice.chance(0.5);
  await timeline.sleep(NOTICED_BY_ALL_MILLISECONDS);
  // The other allocators of this home have what D1 lacks.
  await isolates.sweep();
  await timeline.sleep(NOTICED_BY_ALL_MILLISECONDS);
  if (!faults.isOn) checkClosed(world, application);
  administrator.republish(application);
  for (let waited = 0; waited < NOTICED_BY_ALL_MILLISECONDS; waited += MINUTE) {
    await isolates.sweep();
    await timeline.sleep(MINUTE);
  }
  faults.isOn = false;
  // What was interrupted is asked for again.
  administrator.republish(application);
  await isolates.sweep();
  await timeline.sleep(MINUTE);
  for (const { id } of plan.applications) d1.of(id).keepFrom();
}

/** Nobody reads what only an administrator can decide about. */
function checkClosed({ d1, verdict, objects }: World, { id }: ApplicationPlan): void {
  const [head] = d1.of(id).look("SELECT * FROM application_head WHERE application_id = ?", id);
  const known =
    objects
      .get(id)
      ?.sqlite.run("SELECT id FROM entry")
      .rows.map((row) => row.id) ?? [];
  const isClosed = Number(head?.readable_from) > Number(head?.sequence);
  verdict.expect(isClosed || known.includes(head?.entry ?? null), "nobody reads a D1 that is unknown", head, known);
}
