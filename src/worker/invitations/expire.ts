import { SWEEP_CHUNK_ROWS } from "../../shared/limits.ts";
import type { AllocationResult, AllocationRules } from "../allocator/allocations.ts";
import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { type EndedInvitation, findUnreleased, writeExpiries, writeReleases } from "../storage/invitations.ts";
import { wake } from "./end.ts";

/**
 * Ending what is due, in steps that can each be repeated: D1 first, then the allocator, then the note that it was done.
 * A number is free only once no invitation can be claimed for it. What died between two steps is found by the note that
 * is missing.
 */

/** One chunk of invitations past their time, of all applications. @returns how many ended; zero when none is left */
export async function expireSome(context: Context): Promise<{ expired: number; released: number }> {
  const { ended, events } = await writeExpiries(context.db, context.now(), SWEEP_CHUNK_ROWS, null);
  wake(context, events);
  const { released } = await giveBack(context, ended);
  return { expired: ended.length, released };
}

/**
 * One chunk of numbers that somebody before did not give back. An application whose object fails is passed over with
 * all that it has, so the others do not wait for it.
 *
 * @param applicationsAfter where the last chunk said to go on; the empty text at first
 * @returns where to go on, or null when nothing is left
 */
export async function releaseSome(
  context: Context,
  applicationsAfter: string,
): Promise<{ released: number; goOnAfter: string | null }> {
  const ended = await findUnreleased(context.db, SWEEP_CHUNK_ROWS, { applicationsAfter });
  if (ended.length === 0) return { released: 0, goOnAfter: null };
  const { released, failed } = await giveBack(context, ended);
  return { released, goOnAfter: failed.at(-1) ?? applicationsAfter };
}

/** Gives numbers back to their allocators. @returns the applications whose object failed, in the order they came in */
async function giveBack(
  context: Context,
  ended: readonly EndedInvitation[],
): Promise<{ released: number; failed: string[] }> {
  const byApplication = [...Map.groupBy(ended, ({ applicationId }) => applicationId)];
  const outcomes = await Promise.all(
    byApplication.map(async ([applicationId, ofOne]) => {
      try {
        await context.allocator.release(applicationId, ofOne);
        return { applicationId, released: ofOne.map(({ digest }) => digest), isFailed: false };
      } catch (error) {
        log("warn", { event: "release-left-to-sweep", application: applicationId, error });
        return { applicationId, released: [], isFailed: true };
      }
    }),
  );
  const released = outcomes.flatMap((outcome) => outcome.released);
  if (released.length > 0) await writeReleases(context.db, released, context.now());
  const failed = outcomes.filter(({ isFailed }) => isFailed).map(({ applicationId }) => applicationId);
  return { released: released.length, failed };
}

/**
 * Leases a number; when there is none, ends what is due and asks once more with the newest range, so nobody is turned
 * away for a number that only waits for the sweep.
 */
export async function withFreedNumbers(
  context: Context,
  application: Application,
  allocate: (rules: AllocationRules) => Promise<AllocationResult>,
): Promise<AllocationResult> {
  const result = await allocate(rulesOf(application));
  if (result.kind !== "exhausted") return result;
  const fresh = await context.registry.findFresh(context.db, application.id, context.now());
  await endDueOf(context, application.id);
  return allocate(rulesOf(fresh ?? application));
}

/** One chunk of what the sweep does, for one application. */
async function endDueOf(context: Context, applicationId: string): Promise<void> {
  const { db, allocator, now } = context;
  const { events } = await writeExpiries(db, now(), SWEEP_CHUNK_ROWS, applicationId);
  wake(context, events);
  const unreleased = await findUnreleased(db, SWEEP_CHUNK_ROWS, { applicationId });
  if (unreleased.length === 0) return;
  await allocator.release(applicationId, unreleased);
  const digests = unreleased.map(({ digest }) => digest);
  await writeReleases(db, digests, now());
}

function rulesOf({ range, reuseAfterSeconds }: Application): AllocationRules {
  return { range, reuseAfterSeconds };
}
