import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { Ledger } from "../../src/worker/allocator/ledger.ts";

/** A ledger on the storage of a real Durable Object of its own. */
export interface LedgerObject {
  /** Runs one atomic step in the object, on a ledger made for it: what it knows comes from storage alone. */
  run<T>(step: (ledger: Ledger, sql: SqlStorage) => T): Promise<T>;
  /** Ends the object as the platform does; the next step starts it again. */
  evict(): Promise<void>;
}

let nextObject = 0;

export function createLedgerObject(): LedgerObject {
  const stub = env.ALLOCATOR.getByName(`ledger-${nextObject++}`);
  return {
    run: (step) => runInDurableObject(stub, (_, { storage }) => step(new Ledger(storage.sql), storage.sql)),
    evict: () => evictDurableObject(stub),
  };
}

/** Every released number with the time when it was released, oldest first, wherever the ledger keeps it. */
export function freedRows(sql: SqlStorage): { number: number; freed_at: number }[] {
  return sql
    .exec<{ number: number; freed_at: number }>(
      `SELECT number, freed_at FROM free UNION ALL SELECT number, freed_at FROM ready
       UNION ALL SELECT number, freed_at FROM beyond ORDER BY freed_at`,
    )
    .toArray();
}

export const freedNumbers = (sql: SqlStorage): number[] => freedRows(sql).map(({ number }) => number);
