import type { ApplicationId } from "../../shared/identifiers.ts";
import { DUE_CHUNK_APPLICATIONS, OBJECTS_CALLED_AT_ONCE } from "../../shared/limits.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { findApplicationsWithCommands, findDueApplications, listApplications } from "../storage/inbox.ts";

/** Objects carry out commands of the script (contract section 21). */
export const carryOutCommands = (context: Context): Promise<void> =>
  attempt(context, "carry-out-commands", async () => {
    await wakeObjects(context, await findApplicationsWithCommands(context.db, DUE_CHUNK_APPLICATIONS), false);
  });

/** Objects record expiries, and finish blocks whose caller is gone. */
export const recordDue = (context: Context): Promise<void> =>
  attempt(context, "record-due", async () => {
    const due = await findDueApplications(context.db, context.now(), DUE_CHUNK_APPLICATIONS);
    await wakeObjects(context, due, false);
  });

/**
 * One chunk of the home's objects compares itself with D1.
 *
 * @param after the last application of the chunk before
 * @returns the same for the next chunk; null: there is none
 */
export async function compareObjects(context: Context, after: string): Promise<string | null> {
  let next: string | null = after;
  await attempt(context, "compare-objects", async () => {
    const applications = await listApplications(context.db, after, DUE_CHUNK_APPLICATIONS);
    await wakeObjects(context, applications, true);
    next = applications.length < DUE_CHUNK_APPLICATIONS ? null : (applications.at(-1) ?? null);
    log("info", {
      event: "objects-compared",
      home: context.home,
      compared: applications.length,
      isFinished: next === null,
    });
  });
  return next;
}

/** Side by side, so that an object that hangs delays no other. */
async function wakeObjects(
  context: Context,
  applications: readonly ApplicationId[],
  isToCompare: boolean,
): Promise<void> {
  const waiting = [...applications];
  const callInTurn = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      try {
        await context.allocator.wake(id, isToCompare);
      } catch (error) {
        log("warn", { event: "object-left-to-next-tick", application: id, error });
      }
    }
  };
  await Promise.all(Array.from({ length: OBJECTS_CALLED_AT_ONCE }, callInTurn));
}

/** What fails is repeated by the next tick, and stops nothing else. */
async function attempt({ home }: Context, work: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    log("error", { event: "sweep-part-failed", home, part: work, error });
  }
}
