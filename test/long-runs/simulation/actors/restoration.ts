import { IS_UNCONFIRMED } from "../../../../src/worker/allocator/ledger-tables.ts";
import type { World } from "../world.ts";
import type { Follower } from "./follower.ts";

/**
 * Puts the D1 of one home back to an older state, while the objects and other homes stay as they are. From then on clients of
 * that home, and of no other, are not held to what they were told before: badges, revocations and claims are forgotten. What holds all the same: no number gets a second owner
 * whom its object does not know, positions do not come again, and readers of the feed start again and end with a copy.
 */
export function restoreD1(world: World, home: number, followers: readonly Follower[]): void {
  const { rows, life, told, objects, plan, trace } = world;
  const d1 = world.d1.at(home);
  trace.add("seed", `D1 of home ${home} is restored`);
  world.restoredHome = home;
  d1.restore();
  const [clock] = d1.look("SELECT sequence FROM clock");
  const badges = d1.look("SELECT * FROM badge WHERE position IS NOT NULL");
  const remembered = new Set(plan.applications.flatMap(({ id }) => numbersKnownTo(objects.get(id))));
  const inD1 = new Set(
    world.d1.look("SELECT number FROM badge WHERE position IS NOT NULL").map(({ number }) => Number(number)),
  );
  rows.restored(badges, (number) => remembered.has(number) || inD1.has(number));
  life.restored(badges, d1.look("SELECT * FROM blocked_user"), (id) => positionSeenBy(objects.get(id)));
  told.restored();
  // Elsewhere the sweeps before the restoration had failed, and only what is written afterwards can show it.
  const isNoticed = Number(clock?.sequence ?? 0) < clockSeenBy(objects.get(home === 1 ? "clock" : `clock-${home}`));
  if (!isNoticed) return;
  for (const follower of followers) if (world.isRestored(follower.applicationId)) follower.expire();
}

type StoredObject = ReturnType<World["objects"]["get"]>;

/** Numbers whose owner an object knows: a device's lease that is confirmed, an invitation's that is claimed. */
function numbersKnownTo(object: StoredObject): number[] {
  const sql = `SELECT number FROM lease
    WHERE claimed_by IS NOT NULL OR (NOT ${IS_UNCONFIRMED} AND holder LIKE 'device:%')`;
  return object?.sqlite.run(sql).rows.map(({ number }) => Number(number)) ?? [];
}

function clockSeenBy(object: StoredObject): number {
  const [row] = object?.sqlite.run("SELECT sequence FROM clock_sequence").rows ?? [];
  return Number(row?.sequence ?? 0);
}

function positionSeenBy(object: StoredObject): number {
  const [row] = object?.sqlite.run("SELECT position FROM progress").rows ?? [];
  return Number(row?.position ?? 0);
}
