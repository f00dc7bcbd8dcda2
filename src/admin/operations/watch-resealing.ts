import { setTimeout as wait } from "node:timers/promises";
import { Mistake } from "../mistake.ts";
import type { Database } from "../platform/database.ts";
import { countOldValues } from "./sealing-keys.ts";

const POLL_MILLISECONDS = 1000;

/**
 * Watches the service's sweep re-seal everything to the newest key. Only the Worker can do that; stopping to watch stops
 * nothing.
 *
 * @param progress is told how many values are left, whenever that changes
 * @param patienceMilliseconds how long the number may stay the same
 * @throws Mistake when nothing changes for that long
 */
export async function watchResealing(
  database: Database,
  progress: (left: number) => void,
  patienceMilliseconds: number,
): Promise<void> {
  let left = -1;
  let changedAt = Date.now();
  for (;;) {
    const now = await countOldValues(database);
    if (now !== left) {
      left = now;
      changedAt = Date.now();
      progress(left);
    }
    if (left === 0) return;
    if (Date.now() - changedAt >= patienceMilliseconds) {
      throw new Mistake(`${left} values still need an older sealing key: start the service, then run this again.`);
    }
    await wait(POLL_MILLISECONDS);
  }
}
