import { IS_UNCONFIRMED } from "../../../../src/worker/allocator/ledger-tables.ts";
import type { World } from "../world.ts";

/**
 * Puts the D1 of one home back to an older state, while the objects and other homes stay as they are. From then on clients of
 * that home, and of no other, are not held to what they were told before: badges, revocations and claims are forgotten. What
 * holds all the same: no number gets a second owner whom its object does not know, positions do not come again, and readers
 * of the feed start again and end with a copy.
 */
export function restoreD1(world: World, home: number): void {
  const { rows, history, objects, d1, plan, trace } = world;
  trace.add("seed", `D1 of home ${home} is restored`);
  world.restoredHome = home;
  d1.at(home).restore();
  const numbersOf = (object: string, sql: string) =>
    (objects.get(object)?.sqlite.run(sql).rows ?? []).map(({ value }) => Number(value));
  const known = new Set([
    ...d1.look("SELECT number FROM badge WHERE position IS NOT NULL").map(({ number }) => Number(number)),
    ...plan.applications.flatMap(({ id }) => numbersOf(id, CERTAIN_OWNERS)),
  ]);
  history.restored(home);
  rows.restored(known, (id) => Math.max(0, ...numbersOf(id, "SELECT position AS value FROM progress")));
}

/** Numbers whose owner an object knows by itself: a device's lease that is confirmed, an invitation's that is claimed. */
const CERTAIN_OWNERS = `SELECT number AS value FROM lease
  WHERE claimed_by IS NOT NULL OR (NOT ${IS_UNCONFIRMED} AND holder LIKE 'device:%')`;
