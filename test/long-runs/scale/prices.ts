import type { Cost } from "./cost.ts";

/**
 * What Cloudflare publishes: the price list of the Workers Paid plan and the limits, from copies of 2026 of the pages
 * under https://developers.cloudflare.com named beside them. What is our assumption and not published says so.
 */

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
export const OBJECT_SECONDS = 0.02;
/** /durable-objects/platform/pricing: billed whatever it uses. */
const OBJECT_GIGABYTES_OF_MEMORY = 0.128;
const GIGABYTE_SECONDS = OBJECT_SECONDS * OBJECT_GIGABYTES_OF_MEMORY;

/**
 * Our assumptions: a line counts as much as the vendor's average of a Worker's event, what the platform adds included
 * (test/http/log-sample.test.ts: a login's own is some 210 bytes), and is stored for the seven days of the plan.
 */
const LINE_KILOBYTES = 4.8;
const LINE_MONTHS = 7 / 30;

/** Dollars, by what is billed. */
type Bill = Record<"worker" | "d1" | "object" | "queue" | "logs", number>;

/** `dollars` for a million of what `of` counts; `included`: in the plan each month, in millions. */
const PRICES: {
  part: keyof Bill;
  dollars: number;
  included: number;
  of: (cost: Cost) => number;
}[] = [
  // /workers/platform/pricing: requests, and milliseconds of CPU.
  { part: "worker", dollars: 0.3, included: 10, of: ({ invocations }) => invocations },
  { part: "worker", dollars: 0.02, included: 30, of: ({ invocations }) => invocations * CPU_MILLISECONDS },
  // /observability/pricing, from December 2026: gigabytes taken in, and gigabytes and months stored. A gigabyte is a million kilobytes.
  { part: "logs", dollars: 0.25, included: 50, of: ({ logLines }) => logLines * LINE_KILOBYTES },
  { part: "logs", dollars: 0.1, included: 12, of: ({ logLines }) => logLines * LINE_KILOBYTES * LINE_MONTHS },
  // /d1/platform/pricing
  { part: "d1", dollars: 0.001, included: 25_000, of: ({ d1RowsRead }) => d1RowsRead },
  { part: "d1", dollars: 1, included: 50, of: ({ d1RowsWritten }) => d1RowsWritten },
  // /durable-objects/platform/pricing: calls, gigabyte-seconds and rows.
  { part: "object", dollars: 0.15, included: 1, of: ({ objectCalls }) => objectCalls },
  { part: "object", dollars: 12.5, included: 0.4, of: ({ objectCalls }) => objectCalls * GIGABYTE_SECONDS },
  { part: "object", dollars: 0.001, included: 25_000, of: ({ objectRowsRead }) => objectRowsRead },
  { part: "object", dollars: 1, included: 50, of: ({ objectRowsWritten }) => objectRowsWritten },
  // /queues/platform/pricing
  { part: "queue", dollars: 0.4, included: 1, of: ({ queueOperations }) => queueOperations },
];

export const total = (bill: Bill): number => Object.values(bill).reduce((all, dollars) => all + dollars, 0);

/** How many of an operation. */
export type Billed = readonly [cost: Cost, count: number];

/** What these operations cost together. @param isPlanUsed whether what the plan includes is taken off */
export function billOf(operations: readonly Billed[], isPlanUsed: boolean): Bill {
  const bill: Bill = { worker: 0, d1: 0, object: 0, queue: 0, logs: 0 };
  for (const { part, dollars, included, of } of PRICES) {
    const millions = operations.reduce((sum, [cost, count]) => sum + count * of(cost), 0) / 1e6;
    bill[part] += Math.max(0, millions - (isPlanUsed ? included : 0)) * dollars;
  }
  return bill;
}
