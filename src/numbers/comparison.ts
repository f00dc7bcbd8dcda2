import { RECLAIM_CHUNK_LEASES, SKIP_CHUNK_NUMBERS } from "../limits.ts";
import { findNumbers } from "../storage/badge-writes.ts";
import type { Database } from "../storage/database.ts";
import { badgeHolder, holderKey } from "./holder.ts";
import type { Ledger, UnconfirmedLease } from "./ledger.ts";

/** Passes over all numbers that come next and that D1 knows. */
export async function skipKnownNumbers(db: Database, ledger: Ledger): Promise<void> {
  for (;;) {
    const next = [ledger.peekFree(SKIP_CHUNK_NUMBERS), ledger.peekFresh(SKIP_CHUNK_NUMBERS)];
    const known = await findNumbers(db, next.flat());
    ledger.skipTaken(new Set(known.keys()));
    if (next.every((numbers) => numbers.length === 0 || numbers.some((number) => !known.has(number)))) return;
  }
}

/**
 * Confirms, takes back or gives up each lease that was not confirmed, as D1 has its badge, nobody's or another's.
 *
 * @param before milliseconds; leases that were asked for since then are left alone
 */
export async function settleUnconfirmed(db: Database, ledger: Ledger, before: number): Promise<void> {
  for (;;) {
    const leases = ledger.unconfirmed(before, RECLAIM_CHUNK_LEASES);
    if (leases.length === 0) return;
    await settle(db, ledger, leases, before);
  }
}

async function settle(
  db: Database,
  ledger: Ledger,
  leases: readonly UnconfirmedLease[],
  before: number,
): Promise<void> {
  const known = await findNumbers(
    db,
    leases.map(({ number }) => number),
  );
  for (const { id, holder, number } of leases) {
    const badge = known.get(number);
    const owner = badge && badgeHolder(badge);
    if (!badge) ledger.reclaim(id, before, Date.now());
    else if (owner && holderKey(owner) === holder) ledger.confirm(holder, number);
    else ledger.markTaken(holder, number);
  }
}
