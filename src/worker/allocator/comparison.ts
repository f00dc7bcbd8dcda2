import { RECLAIM_CHUNK_LEASES, SKIP_CHUNK_NUMBERS } from "../../shared/limits.ts";
import { findNumbers } from "../storage/badge-writes.ts";
import type { Database } from "../storage/database.ts";
import { endPending } from "../storage/invitations.ts";
import { badgeHolder, holderKey } from "./holder.ts";
import type { Ledger, UnconfirmedLease } from "./ledger.ts";

/**
 * Passes over the numbers that come next and that D1 knows: the fresh ones up to one that D1 does not know, and of the
 * freed ones, which are drawn at random, as many as it takes until most of a sample are good.
 */
export async function skipKnownNumbers(db: Database, ledger: Ledger): Promise<void> {
  for (;;) {
    const ready = ledger.sampleReady(SKIP_CHUNK_NUMBERS);
    const fresh = ledger.peekFresh(SKIP_CHUNK_NUMBERS);
    const known = await findNumbers(db, [...ready, ...fresh]);
    ledger.skipTaken(new Set(known.keys()));
    const isFreshGood = fresh.length === 0 || fresh.some((number) => !known.has(number));
    const isReadyGood = ready.filter((number) => known.has(number)).length <= ready.length / 2;
    if (isFreshGood && isReadyGood) return;
  }
}

/**
 * Brings each lease that was not confirmed in line with D1. Of a device: D1 has its badge, and the lease is confirmed. Of an
 * invitation: D1 has the reservation, but nobody was told the token, because the object confirms before it responds; unless
 * its caller can ask for it again, the invitation ends, and its number is free. D1 does not know the number: it is free. D1 has it as somebody else's: the lease
 * is given up.
 *
 * @param before milliseconds; leases that were asked for since then are left alone
 * @returns how many numbers became free
 */
export async function settleUnconfirmed(db: Database, ledger: Ledger, before: number): Promise<number> {
  let freed = 0;
  let looks = new Map<number, number>();
  for (;;) {
    const leases = ledger.unconfirmed(before, RECLAIM_CHUNK_LEASES);
    looks = new Map(leases.map(({ id }) => [id, (looks.get(id) ?? 0) + 1]));
    // What two looks did not settle waits for the next alarm.
    if ([...looks.values()].every((count) => count > 2)) return freed;
    freed += await settle(db, ledger, leases, before);
  }
}

async function settle(
  db: Database,
  ledger: Ledger,
  leases: readonly UnconfirmedLease[],
  before: number,
): Promise<number> {
  const known = await findNumbers(
    db,
    leases.map(({ number }) => number),
  );
  const untold: { lease: UnconfirmedLease; invitation: string }[] = [];
  let freed = 0;
  for (const lease of leases) {
    const { id, holder, number } = lease;
    const badge = known.get(number);
    const owner = badge && badgeHolder(badge);
    if (!badge) freed += Number(ledger.reclaim(id, before, Date.now()));
    else if (!owner || holderKey(owner) !== holder) ledger.markTaken(holder, number);
    else if (owner.kind === "invitation" && badge.device === null && !badge.isRepeatable) {
      untold.push({ lease, invitation: owner.invitation });
    } else ledger.confirm(holder, number);
  }
  return untold.length === 0 ? freed : freed + (await endUntold(db, ledger, untold, before));
}

/**
 * D1 first, then the lease: a crash in between leaves a lease whose number D1 does not know. A request that asks for the
 * invitation after all, which nothing but a very late repetition can, finds in D1 that it has ended, in either order.
 */
async function endUntold(
  db: Database,
  ledger: Ledger,
  untold: readonly { lease: UnconfirmedLease; invitation: string }[],
  before: number,
): Promise<number> {
  const now = Date.now();
  // The sweep wakes their events: nobody waits for an invitation that nobody heard of.
  const { ended } = await endPending(
    db,
    untold.map(({ invitation }) => invitation),
    now,
  );
  let freed = 0;
  for (const { lease, invitation } of untold) {
    // Of the others the next look at D1 tells: claimed after all, or ended by a try whose response was lost.
    if (ended.has(invitation)) freed += Number(ledger.reclaim(lease.id, before, now));
  }
  return freed;
}
