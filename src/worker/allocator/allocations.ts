import { MAX_GROUP_BADGES, MAX_LEASE_ATTEMPTS } from "../../shared/limits.ts";
import type { BadgeWrite, WriteResult } from "../storage/badge-writes.ts";
import type { NumberRange } from "./fresh-numbers.ts";
import { GroupCommit } from "./group-commit.ts";
import type { Ledger } from "./ledger.ts";

/** What the object needs to know of its application to lease a number. */
export interface AllocationRules {
  range: NumberRange;
  reuseAfterSeconds: number;
}

/** A number that somebody asks for, and what D1 is to hold of it. */
export interface Allocation {
  rules: AllocationRules;
  holder: string;
  /** When whoever asks gives up, in milliseconds: what is written later must not count as told. */
  until: number;
  write(number: number): BadgeWrite;
}

/**
 * Business outcomes are values: an exception would cross RPC as a fault of the object. `wakeUps` is for Workers of version
 * 1.0.0, which fail without the list and send what is in it: the object sends wake-ups itself.
 */
export type AllocationResult =
  | { kind: "written"; number: number; wakeUps: readonly never[] }
  | { kind: "existing"; number: number }
  /** An earlier request with the same Idempotency-Key was another. */
  | { kind: "mismatched" }
  /** The user gets no badge. */
  | { kind: "blocked" }
  | { kind: "exhausted" }
  | { kind: "contended" }
  | { kind: "unavailable" };

/** What allocations need of D1. */
export interface AllocationStorage {
  /** Writes all in one transaction. */
  write(this: void, writes: readonly BadgeWrite[]): Promise<WriteResult[]>;
  /** Passes over all numbers that come next and that D1 knows. */
  skipKnownNumbers(this: void): Promise<void>;
  /** Settles leases in vain, as soon as they are old enough. @returns whether that made a number free */
  settleOldLeases(this: void): Promise<boolean>;
}

/** What allocations tell the object, once for each group. Nobody waits for what it does about it. */
export interface AllocationListener {
  /** Numbers have been leased, or there were none. */
  leased(this: void, rules: AllocationRules, now: number): void;
  /** These events have been recorded and are due. */
  recorded(this: void, eventIds: readonly string[]): void;
}

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

  /** @throws Unavailable when D1 does not answer */
  async allocate(allocation: Allocation): Promise<AllocationResult> {
    for (let attempt = 0; attempt < MAX_LEASE_ATTEMPTS; attempt++) {
      const result = await this.#group.add(allocation);
      if (result?.kind === "exhausted" && (await this.#storage.settleOldLeases())) continue;
      if (result) return result;
      await this.#skipTaken();
    }
    return { kind: "contended" };
  }

  /**
   * Leases, writes and confirms for a group. What is noted here before the first `await` and after the last one is one
   * transaction of the object's storage for all of the group, and for the one before it under load: a commit each would
   * cost more than all else.
   *
   * @returns for each, in the same order, its result, or null when another number must be tried
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
    const writes = group.flatMap(({ write }, place) => {
      const lease = leases[place];
      return lease?.kind === "leased" ? [write(lease.number)] : [];
    });
    const written = writes.length === 0 ? [] : await this.#storage.write(writes);
    const remaining = written.values();
    const results = group.map((allocation, index): AllocationResult | null => {
      const lease = leases[index];
      if (lease?.kind !== "leased") return lease ?? null;
      const { value: result } = remaining.next();
      if (!result) throw new Error("a lease was written without a result");
      return this.#apply(allocation, lease.number, result);
    });
    this.#listener.recorded(pendingEvents(writes, written));
    return results;
  }

  /** Brings the ledger in line with what D1 said. @returns null when another number must be tried */
  #apply({ holder, until }: Allocation, number: number, result: WriteResult): AllocationResult | null {
    switch (result.kind) {
      case "written":
        if (Date.now() >= until) return { kind: "unavailable" };
        this.#ledger.confirm(holder, number);
        return { kind: "written", number: result.number, wakeUps: [] };
      case "existing":
        if (result.number === number) this.#ledger.confirm(holder, number);
        else this.#giveUp(holder, number, result.leasedNumberTaken);
        return { kind: "existing", number: result.number };
      case "ended":
        // Its own number or another that it was leased now: the invitation needs none any more.
        this.#giveUp(holder, number, result.leasedNumberTaken);
        return { kind: "existing", number: result.number };
      case "mismatched":
        if (result.isReserved) this.#ledger.confirm(holder, number);
        else this.#giveUp(holder, number, result.leasedNumberTaken);
        return { kind: "mismatched" };
      case "blocked":
        this.#ledger.release(holder, number, Date.now());
        return { kind: "blocked" };
      case "taken":
        this.#ledger.markTaken(holder, number);
        return null;
    }
  }

  #giveUp(holder: string, number: number, isTaken: boolean): void {
    if (isTaken) this.#ledger.markTaken(holder, number);
    else this.#ledger.release(holder, number, Date.now());
  }

  /**
   * After one taken number others are likely: this object was restored to an older state. Passes over all that come next
   * and that D1 knows, once for everybody who met one.
   */
  #skipTaken(): Promise<void> {
    this.#skipping ??= this.#storage.skipKnownNumbers().finally(() => {
      this.#skipping = null;
    });
    return this.#skipping;
  }
}

function pendingEvents(writes: readonly BadgeWrite[], results: readonly WriteResult[]): readonly string[] {
  return writes.flatMap((write, place) => {
    const result = results[place];
    const isPending = result?.kind === "written" && result.eventPending;
    return write.kind === "issue" && isPending ? [write.eventId] : [];
  });
}
