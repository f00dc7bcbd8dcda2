import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { Ledger } from "../../src/numbers/ledger.ts";

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
