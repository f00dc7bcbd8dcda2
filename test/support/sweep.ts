import type { Context } from "../../src/worker/context.ts";
import type { Checkpoints } from "../../src/worker/scheduling/old-rows.ts";
import { sweepHome } from "../../src/worker/scheduling/sweep.ts";
import { wakeForCommands } from "../../src/worker/scheduling/wake-allocators.ts";
import { listApplicationIds } from "../../src/worker/storage/applications.ts";
import type { Checkpoint } from "../../src/worker/storage/retention.ts";
import { ring } from "./allocator.ts";
import { testContext } from "./context.ts";

/** More applications than a test makes. */
const MANY = 10_000;

/**
 * What happens by itself within a minute, here in one home: its scheduler's tick, and then its allocators' alarms. Scans for old
 * rows begin anew.
 */
export async function sweep(context: Context = testContext().context): Promise<void> {
  const known = new Map<string, Checkpoint | null>();
  const checkpoints: Checkpoints = {
    get: (name) => known.get(name) ?? null,
    set: (name, value) => known.set(name, value),
  };
  await Promise.all([wakeForCommands(context), sweepHome(context, checkpoints)]);
  const applications = await listApplicationIds(context.db, MANY);
  await Promise.all(applications.map((id) => ring({ id })));
}
