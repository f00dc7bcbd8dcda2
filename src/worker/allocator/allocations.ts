import { MAX_GROUP_BADGES, MAX_LEASE_ATTEMPTS } from "../../shared/limits.ts";
import type { NumberRange } from "../../shared/number-range.ts";
import { type HighWater, NO_BADGE_YET } from "../../shared/storage/high-water.ts";
import type { BadgeWrite, WriteResult } from "../storage/badge-writes.ts";
import { GroupCommit } from "./group-commit.ts";
import type { HolderKey } from "./holder.ts";
import type { Ledger } from "./ledger.ts";

/** The application's settings that leasing a number depends on. */
export interface AllocationRules {
  range: NumberRange;
  reuseAfterSeconds: number;
}

/** A request for a number, and the row to be written for it. */
export interface Allocation {
  rules: AllocationRules;
  holder: HolderKey;
  /** When the caller gives up, in milliseconds: a result after that is reported as unavailable. */
  until: number;
  write(number: number): BadgeWrite;
}

/**
 * Business outcomes are values, because an exception would cross RPC as a fault of the object. `wakeUps` is always empty,
 * since the object sends wake-ups itself; Workers of release 1.0 fail without the list. `bookmark`: D1's state after the
 * write (contract section 16); objects of an earlier release do not report it.
 */
export type AllocationResult =
  | { kind: "written"; number: number; wakeUps: readonly never[]; bookmark?: string | null }
  | { kind: "existing"; number: number }
  /** The Idempotency-Key was used for a different request. */
  | { kind: "mismatched" }
  /** The user is blocked. */
  | { kind: "blocked" }
  | { kind: "exhausted" }
  | { kind: "contended" }
  | { kind: "unavailable" };

/** D1, as allocations use it. */
export interface AllocationStorage {
  /**
   * Writes everything in one transaction.
   *
   * @returns a result for each write, the highest numbers written, the bookmark, and whether no earlier try may still be written
   */
  write(
    this: void,
    writes: readonly BadgeWrite[],
  ): Promise<{ results: WriteResult[]; written: HighWater; bookmark: string | null; isFirstTry: boolean }>;
  /** Skips those of the next numbers that D1 already has. */
  skipKnownNumbers(this: void): Promise<void>;
  /** Settles unconfirmed leases that are old enough. @returns whether that freed a number */
  settleOldLeases(this: void): Promise<boolean>;
}

/** Called once per group; what it starts is not awaited. */
export interface AllocationListener {
  /** Numbers were leased, or the range is exhausted. */
  leased(this: void, rules: AllocationRules, now: number): void;
  /** Events were recorded and are due. */
  recorded(this: void, eventIds: readonly string[]): void;
}

const NOTHING_WRITTEN = { results: [], written: NO_BADGE_YET, bookmark: null, isFirstTry: true };

/** Numbers of one application: leased, written to D1 and confirmed in groups. */
export class Allocations {
  readonly #ledger: Ledger;
  readonly #storage: AllocationStorage;
  readonly #listener: AllocationListener;
  readonly #group = new GroupCommit<Allocation, AllocationResult | null>(MAX_GROUP_BADGES, (group) =>
    this.#allocateAll(group),
  );
  #skipping: Promise<void> | null = null;

  constructor(ledger: Ledger, storage: AllocationStorage, listener: AllocationListener) {
    this.#ledger = ledger;
    this.#storage = storage;
    this.#listener = listener;
  }

  /** @throws Unavailable when D1 fails or does not respond in time */
  async allocate(allocation: Allocation): Promise<AllocationResult> {
    for (let attempt = 0; attempt < MAX_LEASE_ATTEMPTS; attempt++) {
      const result = await this.#group.add(allocation);
      if (result?.kind === "exhausted" && (await this.#storage.settleOldLeases())) continue;
      if (result) return result;
      await this.#skipKnown();
    }
    return { kind: "contended" };
  }

  /**
   * Leases, writes and confirms the numbers of a group. The ledger is only written before the first `await` and after the
   * last one, so the object's storage commits once for all of the group, and under load once for two groups: a commit for
   * each number would cost more than all the rest.
   *
   * @returns a result for each allocation, in the same order; null when another number must be tried
   */
  async #allocateAll(group: readonly Allocation[]): Promise<(AllocationResult | null)[]> {
    const now = Date.now();
    const leases = group.map(({ holder, rules, until }) =>
      now < until
        ? this.#ledger.lease(holder, rules.range, rules.reuseAfterSeconds, now)
        : ({ kind: "unavailable" } as const),
    );
    const newest = group.at(-1);
    if (newest) this.#listener.leased(newest.rules, now);
    const writes = group.flatMap(({ write }, index) => {
      const lease = leases[index];
      return lease?.kind === "leased" ? [write(lease.number)] : [];
    });
    const {
      results: outcomes,
      written,
      bookmark,
      isFirstTry,
    } = writes.length === 0 ? NOTHING_WRITTEN : await this.#storage.write(writes);
    const remaining = outcomes.values();
    const confirmed: { holder: HolderKey; number: number }[] = [];
    const results = group.map((allocation, index): AllocationResult | null => {
      const lease = leases[index];
      if (lease?.kind !== "leased") return lease ?? null;
      const { value: result } = remaining.next();
      if (!result) throw new Error("D1 returned fewer results than leases were written");
      const isOnlyTry = lease.isNew && isFirstTry;
      const outcome = this.#apply(allocation, lease.number, result, isOnlyTry, () => {
        confirmed.push({ holder: allocation.holder, number: lease.number });
      });
      return outcome?.kind === "written" ? { ...outcome, bookmark } : outcome;
    });
    this.#ledger.confirmGroup(confirmed, written);
    this.#listener.recorded(pendingEvents(writes, outcomes));
    return results;
  }

  /**
   * Updates the ledger to match D1's result, except for confirmations, which the caller makes for the whole group.
   *
   * @param isOnlyTry no earlier try of the same holder may still be written
   * @returns null when it must be tried again
   */
  #apply(
    allocation: Allocation,
    number: number,
    result: WriteResult,
    isOnlyTry: boolean,
    confirm: () => void,
  ): AllocationResult | null {
    const { holder, until } = allocation;
    const endLease = (isTaken: boolean) => {
      if (isTaken) this.#ledger.markTaken(holder, number);
      else this.#giveBack(allocation, number, isOnlyTry);
    };
    switch (result.kind) {
      case "written":
        if (Date.now() >= until) return { kind: "unavailable" };
        confirm();
        return { kind: "written", number: result.number, wakeUps: [] };
      case "existing":
        if (result.number === number) confirm();
        else endLease(result.leasedNumberTaken);
        return { kind: "existing", number: result.number };
      case "ended":
        // An ended invitation needs no number, whether it is the same one or newly leased.
        endLease(result.leasedNumberTaken);
        return { kind: "existing", number: result.number };
      case "mismatched":
        if (result.isReserved) confirm();
        else endLease(result.leasedNumberTaken);
        return { kind: "mismatched" };
      case "blocked":
        // A block may end before an earlier try is written, which then needs its lease: the alarm settles it.
        if (isOnlyTry) endLease(false);
        return { kind: "blocked" };
      case "taken":
        this.#ledger.markTaken(holder, number);
        return null;
      case "unhindered":
        return null;
    }
  }

  /**
   * A number that was never written need not rest again: it was fresh, or past the reuse delay, when it was leased. If it did,
   * a caller who is refused and asks again would use up a small range.
   */
  #giveBack({ holder, rules }: Allocation, number: number, isOnlyTry: boolean): void {
    const now = Date.now();
    const freedAt = isOnlyTry ? now - rules.reuseAfterSeconds * 1000 : now;
    this.#ledger.releaseUnconfirmed(holder, number, freedAt);
  }

  /**
   * A taken number means that this object was restored to an older state, so more are likely. Concurrent callers share one
   * run that skips them.
   */
  #skipKnown(): Promise<void> {
    this.#skipping ??= this.#storage.skipKnownNumbers().finally(() => {
      this.#skipping = null;
    });
    return this.#skipping;
  }
}

function pendingEvents(writes: readonly BadgeWrite[], results: readonly WriteResult[]): readonly string[] {
  return writes.flatMap((write, index) => {
    const result = results[index];
    const isPending = result?.kind === "written" && result.eventPending;
    return write.kind === "issue" && isPending ? [write.eventId] : [];
  });
}
