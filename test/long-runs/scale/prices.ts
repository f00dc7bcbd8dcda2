import type { Cost } from "./cost.ts";

/**
 * What Cloudflare publishes: the price list of the Workers Paid plan and the limits, from copies of 2026 of the pages
 * under https://developers.cloudflare.com named beside them. What is our assumption and not published says so.
 */

/** `dollars` for a million; `included`: in the plan each month, in millions. */
const PRICES = {
  /** /workers/platform/pricing */
  invocations: { dollars: 0.3, included: 10 },
  cpuMilliseconds: { dollars: 0.02, included: 30 },
  /** /workers/platform/pricing, Workers Logs; from December 2026 /observability/pricing. */
  logLines: { dollars: 0.6, included: 20 },
  /** /d1/platform/pricing */
  d1RowsRead: { dollars: 0.001, included: 25_000 },
  d1RowsWritten: { dollars: 1, included: 50 },
  /** /durable-objects/platform/pricing */
  objectCalls: { dollars: 0.15, included: 1 },
  objectGigabyteSeconds: { dollars: 12.5, included: 0.4 },
  objectRowsRead: { dollars: 0.001, included: 25_000 },
  objectRowsWritten: { dollars: 1, included: 50 },
  /** /queues/platform/pricing */
  queueOperations: { dollars: 0.4, included: 1 },
};

/** A month. */
export const PLAN_DOLLARS = 5;

/** /d1/platform/pricing and /durable-objects/platform/pricing: a gigabyte and month, beyond 5 that the plan includes. */
export const storageDollars = (stored: { d1Gigabytes: number; objectGigabytes: number }): number =>
  Math.max(0, stored.d1Gigabytes - 5) * 0.75 + Math.max(0, stored.objectGigabytes - 5) * 0.2;

/** Of a D1, which cannot be raised (/d1/platform/limits), and of an object (/durable-objects/platform/limits). */
export const GIGABYTES = 10;

/**
 * A D1 runs one query at a time, so its limit is a second of work a second, and so is each copy's. /d1/platform/limits: an
 * indexed read takes less than a millisecond, a write several; how many is our assumption.
 */
export const D1_READ_MILLISECONDS = 1;
export const D1_WRITE_MILLISECONDS = 5;

/** Our assumptions: CPU time of one start of the Worker, and how long an object is awake for one call. */
const CPU_MILLISECONDS = 2;
const OBJECT_SECONDS = 0.02;
/** /durable-objects/platform/pricing: billed whatever it uses. */
const OBJECT_GIGABYTES_OF_MEMORY = 0.128;

/** Dollars, by what is billed. */
export interface Bill {
  worker: number;
  d1: number;
  object: number;
  queue: number;
  logs: number;
}

export const total = (bill: Bill): number => Object.values(bill).reduce((all: number, dollars) => all + dollars, 0);

/** What so many of these operations cost together. @param isPlanUsed whether what the plan includes is taken off */
export function billOf(operations: readonly (readonly [cost: Cost, count: number])[], isPlanUsed: boolean): Bill {
  const amountOf = (thing: keyof typeof PRICES, cost: Cost): number => {
    if (thing === "cpuMilliseconds") return cost.invocations * CPU_MILLISECONDS;
    if (thing === "objectGigabyteSeconds") return cost.objectCalls * OBJECT_SECONDS * OBJECT_GIGABYTES_OF_MEMORY;
    return cost[thing];
  };
  const dollarsOf = (...things: (keyof typeof PRICES)[]) =>
    things.reduce((sum, thing) => {
      const { dollars, included } = PRICES[thing];
      const amount = operations.reduce((all, [cost, count]) => all + count * amountOf(thing, cost), 0);
      return sum + Math.max(0, amount / 1e6 - (isPlanUsed ? included : 0)) * dollars;
    }, 0);
  return {
    worker: dollarsOf("invocations", "cpuMilliseconds"),
    d1: dollarsOf("d1RowsRead", "d1RowsWritten"),
    object: dollarsOf("objectCalls", "objectGigabyteSeconds", "objectRowsRead", "objectRowsWritten"),
    queue: dollarsOf("queueOperations"),
    logs: dollarsOf("logLines"),
  };
}
