import type { ApplicationId } from "../../shared/identifiers.ts";
import { DUE_CHUNK_APPLICATIONS, OBJECTS_CALLED_AT_ONCE } from "../../shared/limits.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { findApplicationsWithCommands, findDueApplications, listApplications } from "../storage/inbox.ts";

/** What a home's clock remembers of the objects that it calls. */
export class DueWork {
  /** Objects that are being called: they are not called again meanwhile. */
  readonly busy = new Set<ApplicationId>();
  /** Where the next looks begin. */
  commandsAfter = "";
  dueAfter = "";
}

/** Objects carry out commands of the script (contract section 21). */
export const carryOutCommands = (context: Context, work = new DueWork()): Promise<void> =>
  attempt(context, "carry-out-commands", async () => {
    const { applications, next } = await findApplicationsWithCommands(
      context.db,
      work.commandsAfter,
      DUE_CHUNK_APPLICATIONS,
    );
    work.commandsAfter = next;
    await wakeObjects(context, applications, work);
  });

/** Objects record expiries, and finish blocks whose caller is gone. */
export const recordDue = (context: Context, work = new DueWork()): Promise<void> =>
  attempt(context, "record-due", async () => {
    const { db, now } = context;
    const { applications, next } = await findDueApplications(db, now(), work.dueAfter, DUE_CHUNK_APPLICATIONS);
    work.dueAfter = next;
    await wakeObjects(context, applications, work);
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
    const failed = await wakeObjects(context, applications, null);
    // An object that fails twice compares itself when it is called next.
    await wakeObjects(context, failed, null);
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

/**
 * Side by side, so that an object that hangs delays no other.
 *
 * @param work null: the objects are to compare themselves with D1
 * @returns the applications whose object failed
 */
async function wakeObjects(
  context: Context,
  applications: readonly ApplicationId[],
  work: DueWork | null,
): Promise<ApplicationId[]> {
  const waiting = applications.filter((id) => !work?.busy.has(id));
  const failed: ApplicationId[] = [];
  for (const id of waiting) work?.busy.add(id);
  const callInTurn = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      try {
        await context.allocator.wake(id, work === null);
      } catch (error) {
        failed.push(id);
        log("warn", { event: "object-left-to-next-tick", application: id, error });
      }
      work?.busy.delete(id);
    }
  };
  await Promise.all(Array.from({ length: OBJECTS_CALLED_AT_ONCE }, callInTurn));
  return failed;
}

/** What fails is repeated by the next tick, and stops nothing else. */
async function attempt({ home }: Context, work: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    log("error", { event: "sweep-part-failed", home, part: work, error });
  }
}
