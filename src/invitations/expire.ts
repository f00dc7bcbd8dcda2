import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { SWEEP_CHUNK_ROWS } from "../limits.ts";
import type { AllocationResult, AllocationRules } from "../numbers/allocator.ts";
import { findUnreleased, writeExpiries, writeReleases } from "../storage/invitations.ts";

/**
 * One chunk of ending what is due: invitations past their time expire, and numbers of ended invitations go back to
 * their allocators. Whatever died between two of these steps before is found here and finished. D1 first, then the
 * allocator, then the note that it was done: a number is free only once no invitation can be claimed for it.
 *
 * @param applicationId of one application, or null for all
 * @returns how many it did of each; both zero when nothing is left
 */
export async function endDueInvitations(
  context: Context,
  applicationId: string | null,
): Promise<{ expired: number; released: number }> {
  const { db, allocator } = context;
  const expired = await writeExpiries(db, context.now(), SWEEP_CHUNK_ROWS, applicationId);
  const unreleased = await findUnreleased(db, SWEEP_CHUNK_ROWS, applicationId);
  let released = 0;
  for (const [id, digests] of unreleased) {
    await allocator.release(id, digests, context.now());
    await writeReleases(db, digests, context.now());
    released += digests.length;
  }
  return { expired, released };
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
  await endDueInvitations(context, application.id);
  return allocate(rulesOf(fresh ?? application));
}

function rulesOf({ range, reuseAfterSeconds }: Application): AllocationRules {
  return { range, reuseAfterSeconds };
}
