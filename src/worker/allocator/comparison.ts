import type { InvitationDigest } from "../../shared/identifiers.ts";
import { RECLAIM_CHUNK_LEASES, SKIP_CHUNK_NUMBERS } from "../../shared/limits.ts";
import type { Database } from "../storage/database.ts";
import { endPending } from "../storage/invitation-ends.ts";
import { findNumberOwners } from "../storage/number-owners.ts";
import { badgeHolder, holderKey } from "./holder.ts";
import type { Ledger, UnconfirmedLease } from "./ledger.ts";

/**
 * Skips those of the next numbers that D1 already has: fresh numbers up to the first that is free in D1, and freed
 * numbers, which are drawn at random, until most of a sample are free in D1.
 */
export async function skipKnownNumbers(db: Database, ledger: Ledger): Promise<void> {
  for (;;) {
    const ready = ledger.sampleReady(SKIP_CHUNK_NUMBERS);
    const fresh = ledger.peekFresh(SKIP_CHUNK_NUMBERS);
    const known = await findNumberOwners(db, [...ready, ...fresh]);
    ledger.skipTaken(new Set(known.keys()));
    const isFreshGood = fresh.length === 0 || fresh.some((number) => !known.has(number));
    const isReadyGood = ready.filter((number) => known.has(number)).length <= ready.length / 2;
    if (isFreshGood && isReadyGood) return;
  }
}

/**
 * Settles unconfirmed leases by what D1 has for their numbers:
 *
 * - nothing: the number is freed;
 * - the holder's badge: the lease is confirmed;
 * - the holder's reservation: the token was never reported, because the object confirms before it responds. So the
 *   invitation ends and its number is freed, unless its creator can request it again;
 * - another owner: the lease ends, and the number is not freed.
 *
 * @param before milliseconds; leases that were requested since then are skipped
 * @returns how many numbers were freed
 */
export async function settleUnconfirmed(db: Database, ledger: Ledger, before: number): Promise<number> {
  let freed = 0;
  let rounds = new Map<number, number>();
  for (;;) {
    const leases = ledger.unconfirmed(before, RECLAIM_CHUNK_LEASES);
    rounds = new Map(leases.map(({ id }) => [id, (rounds.get(id) ?? 0) + 1]));
    // A lease that two rounds did not settle waits for the next alarm.
    if ([...rounds.values()].every((count) => count > 2)) return freed;
    freed += await settle(db, ledger, leases, before);
  }
}

async function settle(
  db: Database,
  ledger: Ledger,
  leases: readonly UnconfirmedLease[],
  before: number,
): Promise<number> {
  const known = await findNumberOwners(
    db,
    leases.map(({ number }) => number),
  );
  const unreported: { lease: UnconfirmedLease; invitation: InvitationDigest }[] = [];
  let freed = 0;
  for (const lease of leases) {
    const { id, holder, number } = lease;
    const badge = known.get(number);
    const owner = badge && badgeHolder(badge);
    if (!badge) freed += Number(ledger.reclaim(id, before, Date.now()));
    else if (!owner || holderKey(owner) !== holder) ledger.markTaken(holder, number);
    else if (owner.kind === "invitation" && badge.device === null && !badge.isRepeatable) {
      unreported.push({ lease, invitation: owner.invitation });
    } else ledger.confirm(holder, number);
  }
  return unreported.length === 0 ? freed : freed + (await endUnreported(db, ledger, unreported, before));
}

/**
 * D1 first, then the lease: a crash in between leaves a lease whose number is free in D1, which the next run reclaims. A very
 * late retry of the reservation finds in D1 that the invitation has ended, in either order.
 */
async function endUnreported(
  db: Database,
  ledger: Ledger,
  unreported: readonly { lease: UnconfirmedLease; invitation: InvitationDigest }[],
  before: number,
): Promise<number> {
  const now = Date.now();
  // The sweep sends wake-ups for the events: nobody is waiting for an invitation that was never reported.
  const { ended } = await endPending(
    db,
    unreported.map(({ invitation }) => invitation),
    now,
  );
  let freed = 0;
  for (const { lease, invitation } of unreported) {
    // The next round settles the others: claimed in the meantime, or ended by a try whose response was lost.
    if (ended.has(invitation)) freed += Number(ledger.reclaim(lease.id, before, now));
  }
  return freed;
}
