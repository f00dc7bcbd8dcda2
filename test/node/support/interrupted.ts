import type { Database } from "../../../src/admin/platform/database.ts";

/** A database in which something else happens right before one of the steps: every interleaving with it can be tried. */
export interface InterruptedDatabase {
  database: Database;
  /** False when the work ended before that step. */
  wasInterrupted(): boolean;
}

/** @param step which one, counted from 1 */
export function interruptBefore(
  step: number,
  database: Database,
  meanwhile: () => Promise<unknown>,
): InterruptedDatabase {
  let stepsToGo = step;
  const run: typeof database.run = async (work) => {
    stepsToGo -= 1;
    if (stepsToGo === 0) await meanwhile();
    return database.run(work);
  };
  return {
    database: new Proxy(database, { get: (target, name) => (name === "run" ? run : Reflect.get(target, name)) }),
    wasInterrupted: () => stepsToGo <= 0,
  };
}
