import type { ApplicationId } from "../../shared/identifiers.ts";
import { SWEEP_CHUNK_ROWS } from "../../shared/limits.ts";
import type { AllocationResult, AllocationRules } from "../allocator/allocations.ts";
import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { type EndedInvitation, findUnreleased, writeExpiries, writeReleases } from "../storage/invitation-ends.ts";
import { wakeEvents } from "./end.ts";

/**
 * Ends invitations past their time, in steps that can each be repeated: D1 first, so that the invitation can no longer be
 * claimed, then the allocator, which frees the number, then `released_at` in D1. A crash between the steps leaves
 * `released_at` NULL, and the sweep repeats the rest.
 */

/** Expires one chunk of invitations, of all applications. @returns how many expired; zero when none is left */
export async function expireChunk(context: Context): Promise<{ expired: number; released: number }> {
  const { ended, events } = await writeExpiries(context.db, context.now(), SWEEP_CHUNK_ROWS, null);
  wakeEvents(context, events);
  const { released } = await releaseToAllocators(context, ended);
  return { expired: ended.length, released };
}

/**
 * Releases one chunk of ended invitations' numbers that were not released when they ended. If an application's object fails,
 * all of its invitations are skipped, so that the others do not wait for it.
 *
 * @param afterApplicationId the cursor that the previous chunk returned; at first the empty string
 * @returns the cursor for the next chunk, or null when nothing is left
 */
export async function releaseChunk(
  context: Context,
  afterApplicationId: string,
): Promise<{ released: number; nextCursor: string | null }> {
  const ended = await findUnreleased(context.db, SWEEP_CHUNK_ROWS, { afterApplicationId });
  if (ended.length === 0) return { released: 0, nextCursor: null };
  const { released, failed } = await releaseToAllocators(context, ended);
  return { released, nextCursor: failed.at(-1) ?? afterApplicationId };
}

/** Releases numbers in their allocators. @returns the applications whose object failed, in the given order */
async function releaseToAllocators(
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
 * Leases a number. If none is left, expires the application's due invitations and tries once more with the newest range, so
 * that no request fails for a number that only waits for the sweep.
 */
export async function retryWithFreedNumbers(
  context: Context,
  application: Application,
  allocate: (rules: AllocationRules) => Promise<AllocationResult>,
): Promise<AllocationResult> {
  const result = await allocate(rulesOf(application));
  if (result.kind !== "exhausted") return result;
  const fresh = await context.registry.findFresh(context.db, application.id, context.now());
  await expireDue(context, application.id);
  return allocate(rulesOf(fresh ?? application));
}

/** Expires one chunk of an application's invitations and releases their numbers, as the sweep does for all. */
async function expireDue(context: Context, applicationId: ApplicationId): Promise<void> {
  const { db, allocator, now } = context;
  const { events } = await writeExpiries(db, now(), SWEEP_CHUNK_ROWS, applicationId);
  wakeEvents(context, events);
  const unreleased = await findUnreleased(db, SWEEP_CHUNK_ROWS, { applicationId });
  if (unreleased.length === 0) return;
  await allocator.release(applicationId, unreleased);
  const digests = unreleased.map(({ digest }) => digest);
  await writeReleases(db, digests, now());
}

function rulesOf({ range, reuseAfterSeconds }: Application): AllocationRules {
  return { range, reuseAfterSeconds };
}
