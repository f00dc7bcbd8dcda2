import type { Context } from "../../src/worker/context.ts";
import type { Checkpoints } from "../../src/worker/scheduling/old-rows.ts";
import { sweepHome } from "../../src/worker/scheduling/sweep.ts";
import { wakeForCommands } from "../../src/worker/scheduling/wake-allocators.ts";
import { listApplications } from "../../src/worker/storage/application-list.ts";
import type { Checkpoint } from "../../src/worker/storage/retention.ts";
import { ring } from "./allocator.ts";

/** More applications than a test makes. */
const MANY = 10_000;

/**
 * What happens by itself within a minute, here in each of these homes: its scheduler's tick, and then its allocators' alarms. Scans
 * for old rows begin anew.
 */
export async function sweep(homes: readonly Context[]): Promise<void> {
  const known = new Map<string, Checkpoint | null>();
  const checkpoints: Checkpoints = {
    get: (name) => known.get(name) ?? null,
    set: (name, value) => known.set(name, value),
  };
  await Promise.all(homes.flatMap((context) => [wakeForCommands(context), sweepHome(context, checkpoints)]));
  const applications = await Promise.all(homes.map(({ db }) => listApplications(db, "", MANY)));
  await Promise.all(applications.flat().map((id) => ring({ id })));
}
