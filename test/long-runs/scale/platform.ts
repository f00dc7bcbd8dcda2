/**
 * What Cloudflare publishes: the price list of the Workers Paid plan and the limits, from copies of 2026 of the
 * pages under https://developers.cloudflare.com that stand beside them. What is ours, and not published, says so.
 */

interface Price {
  /** Dollars for a million. */
  dollars: number;
  /** Included in the plan each month, in millions. */
  included: number;
}

export const PRICES = {
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
} satisfies Record<string, Price>;

export type Billed = keyof typeof PRICES;

/** A month. Storage: a gigabyte and month (/d1/platform/pricing, /durable-objects/platform/pricing). */
export const PLAN_DOLLARS = 5;
export const D1_STORAGE = { dollarsPerGigabyte: 0.75, includedGigabytes: 5 };
export const OBJECT_STORAGE = { dollarsPerGigabyte: 0.2, includedGigabytes: 5 };

export const LIMITS = {
  /** /d1/platform/limits: it cannot be raised. */
  D1_GIGABYTES: 10,
  /** /durable-objects/platform/limits: soft, for calls that do little. */
  OBJECT_CALLS_PER_SECOND: 1000,
  /** /durable-objects/platform/limits */
  OBJECT_GIGABYTES: 10,
  /** /queues/platform/limits */
  QUEUE_MESSAGES_PER_SECOND: 5000,
};

/**
 * A D1 runs one query at a time, so its limit is a second of work a second. /d1/platform/limits: a read by an index
 * takes less than a millisecond, a write several; how many is ours.
 */
export const D1_READ_MILLISECONDS = 1;
export const D1_WRITE_MILLISECONDS = 5;

/** Ours: a plan that uses more of a limit than this has no room for a bad minute. */
export const MAX_USE = 0.7;

/** Ours, not counted: processor time of one start of the Worker, and how long an object is awake for one call. */
export const CPU_MILLISECONDS = 2;
export const OBJECT_SECONDS = 0.02;
/** /durable-objects/platform/pricing: billed whatever it uses. */
export const OBJECT_GIGABYTES_OF_MEMORY = 0.128;
