import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import { ALLOCATORS_CALLED_AT_ONCE } from "../../shared/limits/sweep-limits.ts";
import { HOME_RECIPIENT } from "../../shared/script-commands.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { callOnce } from "../platform.ts";
import { findRecipients } from "../storage/command-rows.ts";

/** Wakes allocators for which the script has left commands. @throws Unavailable */
export async function wakeForCommands(context: Context): Promise<void> {
  const recipients = (await findRecipients(context.db)).filter((recipient) => recipient !== HOME_RECIPIENT);
  const applications = recipients.map((id) => applicationId.parse(id));
  await wake(context, applications, false);
}

/** Makes allocators compare themselves with D1. @returns those that could not be reached, and may not know of the restore */
export async function compareAllocators(
  context: Context,
  applications: readonly ApplicationId[],
): Promise<ApplicationId[]> {
  if (applications.length === 0) return [];
  const failed = await wake(context, applications, true);
  const compared = applications.length - failed.length;
  log("info", { event: "allocators-compared", home: context.home, compared, isFinished: failed.length === 0 });
  return failed;
}

/** Calls run side by side, so that a hanging allocator does not delay the others. @returns those that failed */
async function wake(
  context: Context,
  applications: readonly ApplicationId[],
  isInDoubt: boolean,
): Promise<ApplicationId[]> {
  const waiting = [...applications];
  const failed: ApplicationId[] = [];
  const wakeNext = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      try {
        // At the deadline the next allocator is called, but this one continues: a long recovery must not delay others.
        await callOnce("allocator", () => context.allocator.wake(id, isInDoubt));
      } catch (error) {
        failed.push(id);
        log("warn", { event: "allocator-not-woken", application: id, error });
      }
    }
  };
  await Promise.all(Array.from({ length: ALLOCATORS_CALLED_AT_ONCE }, wakeNext));
  return failed;
}
