/** What one operation takes from the platform: all of it is billed, but for round trips. */
export interface Cost {
  /** Starts of the Worker: by a request, by a batch of the queue, or by the clock. */
  invocations: number;
  /** Calls to D1, of the Worker and of the object. */
  d1RoundTrips: number;
  d1RowsRead: number;
  d1RowsWritten: number;
  /** Calls of the object, and alarms of it. */
  objectCalls: number;
  /** In the object's own SQLite. */
  objectRowsRead: number;
  objectRowsWritten: number;
  /** A message costs three: written by whoever sends it, read and deleted by the consumer. */
  queueOperations: number;
  /** Lines in Workers Logs. */
  logLines: number;
}

export const NOTHING: Cost = {
  invocations: 0,
  d1RoundTrips: 0,
  d1RowsRead: 0,
  d1RowsWritten: 0,
  objectCalls: 0,
  objectRowsRead: 0,
  objectRowsWritten: 0,
  queueOperations: 0,
  logLines: 0,
};

const REQUEST: Cost = { ...NOTHING, invocations: 1, logLines: 1 };
const BATCH: Cost = { ...NOTHING, invocations: 1, d1RoundTrips: 2 };

/** Events in one batch of the queue, and invitations that end in one sweep, where many are counted at once. */
export const MANY = 20;

/**
 * Every operation, counted in a warm isolate that knows the application: test/storage/costs.test.ts asserts each of
 * these integers on a real D1, a real object and its storage. docs/scale.md and the model multiply them; nothing is estimated.
 */
export const COSTS = {
  newBadgeWithWebhook: {
    ...REQUEST,
    d1RoundTrips: 2,
    d1RowsRead: 21,
    d1RowsWritten: 8,
    objectCalls: 1,
    objectRowsRead: 11,
    objectRowsWritten: 6,
    queueOperations: 1,
  },
  newBadge: {
    ...REQUEST,
    d1RoundTrips: 2,
    d1RowsRead: 19,
    d1RowsWritten: 5,
    objectCalls: 1,
    objectRowsRead: 11,
    objectRowsWritten: 6,
  },
  existingBadge: { ...REQUEST, d1RoundTrips: 1, d1RowsRead: 7 },
  newerMetadata: { ...REQUEST, d1RoundTrips: 2, d1RowsRead: 9, d1RowsWritten: 2 },
  signature: { ...REQUEST, d1RoundTrips: 1, d1RowsRead: 5 },
  pageOf100: { ...REQUEST, d1RoundTrips: 1, d1RowsRead: 101 },
  createInvitation: {
    ...REQUEST,
    d1RoundTrips: 1,
    d1RowsRead: 6,
    d1RowsWritten: 5,
    objectCalls: 1,
    objectRowsRead: 10,
    objectRowsWritten: 5,
  },
  /** By an application with a webhook URL. */
  claimInvitation: {
    ...REQUEST,
    d1RoundTrips: 2,
    d1RowsRead: 30,
    d1RowsWritten: 9,
    objectCalls: 1,
    objectRowsRead: 3,
    objectRowsWritten: 2,
    queueOperations: 1,
  },
  revokeInvitation: {
    ...REQUEST,
    d1RoundTrips: 4,
    d1RowsRead: 15,
    d1RowsWritten: 4,
    objectCalls: 1,
    objectRowsRead: 2,
    objectRowsWritten: 4,
  },
  /** One batch of one message, and one batch of `MANY`. */
  delivery: { ...BATCH, d1RowsRead: 22, d1RowsWritten: 3, queueOperations: 2, logLines: 1 },
  manyDeliveries: { ...BATCH, d1RowsRead: 326, d1RowsWritten: 60, queueOperations: 40, logLines: 20 },
  /** The first failed attempt of an endpoint that was well; it sends the wake-up of the next one. */
  failedAttempt: { ...BATCH, d1RowsRead: 26, d1RowsWritten: 5, queueOperations: 3, logLines: 1 },
  manyFailedAttempts: { ...BATCH, d1RowsRead: 330, d1RowsWritten: 81, queueOperations: 60, logLines: 20 },
  /** A sweep that finds nothing to do: so much, and for each application so much more. */
  idleSweep: { ...NOTHING, invocations: 1, d1RoundTrips: 11, d1RowsRead: 33, d1RowsWritten: 1, objectCalls: 2 },
  idleSweepOfApplication: { ...NOTHING, d1RowsRead: 10 },
  /** What `MANY` invitations of one application that ended add to a sweep: expired, and their numbers given back. */
  manyExpiries: {
    ...NOTHING,
    d1RoundTrips: 2,
    d1RowsRead: 363,
    d1RowsWritten: 80,
    objectCalls: 1,
    objectRowsRead: 40,
    objectRowsWritten: 80,
    logLines: 1,
  },
  /** The object's alarm, an hour after it was set, with `MANY` leases that came meanwhile. */
  alarm: { ...NOTHING, objectCalls: 1, objectRowsRead: 44, objectRowsWritten: 1 },
} satisfies Record<string, Cost>;
