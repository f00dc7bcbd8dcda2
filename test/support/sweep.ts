import type { Context } from "../../src/worker/context.ts";
import { carryOutCommands, recordDue } from "../../src/worker/scheduling/due.ts";
import type { Cursors } from "../../src/worker/scheduling/retention.ts";
import { sweepHome } from "../../src/worker/scheduling/sweep.ts";

/** What a home's clock does once a minute, here for each of these homes. Scans for old rows begin anew. */
export async function sweep(homes: readonly Context[]): Promise<void> {
  const known = new Map<string, readonly string[] | null>();
  const cursors: Cursors = { get: (name) => known.get(name) ?? null, set: (name, value) => known.set(name, value) };
  await Promise.all(
    homes.flatMap((context) => [recordDue(context), carryOutCommands(context), sweepHome(context, cursors)]),
  );
}
