import { carryOutCommands, recordDue } from "../../src/worker/clock/due.ts";
import { sweepHome } from "../../src/worker/clock/sweep.ts";
import type { Context } from "../../src/worker/context.ts";

/** What a home's clock does once a minute, here for each of these homes. */
export async function sweep(homes: readonly Context[]): Promise<void> {
  await Promise.all(homes.flatMap((context) => [recordDue(context), carryOutCommands(context), sweepHome(context)]));
}
