/** What one operation takes from the platform: all of it is billed, but for round trips. */
export const NOTHING = {
  /** Starts of the Worker: by a request, by a batch of the queue, or by the clock. */
  invocations: 0,
  /** Lines in Workers Logs. */
  logLines: 0,
  /** Calls to D1, of the Worker and of the object. */
  d1RoundTrips: 0,
  d1RowsRead: 0,
  d1RowsWritten: 0,
  /** Calls of the object, and alarms of it. */
  objectCalls: 0,
  /** In the object's own SQLite. */
  objectRowsRead: 0,
  objectRowsWritten: 0,
  /** A message costs three: written by whoever sends it, read and deleted by the consumer. */
  queueOperations: 0,
};

export type Cost = typeof NOTHING;

/** One row of the table below. */
function cost(
  [invocations, logLines]: readonly [number, number],
  [d1RoundTrips, d1RowsRead, d1RowsWritten]: readonly [number, number, number],
  [objectCalls, objectRowsRead, objectRowsWritten]: readonly [number, number, number] = [0, 0, 0],
  queueOperations = 0,
): Cost {
  const d1 = { d1RoundTrips, d1RowsRead, d1RowsWritten };
  return { invocations, logLines, ...d1, objectCalls, objectRowsRead, objectRowsWritten, queueOperations };
}

/** Events in one batch of the queue, and invitations that end in one tick, where many are counted at once. */
export const MANY = 20;

/**
 * What somebody's call causes, by the names that docs/scale.md has, counted in a warm isolate that knows the application:
 * test/storage/costs.test.ts asserts each of these integers on a real D1, a real object and its storage. Nothing is estimated.
 * Each has [starts, log lines], [calls of D1, rows read, rows written], the same of the object, and queue operations.
 */
export const COSTS = {
  "new badge, webhook URL set": cost([1, 1], [2, 21, 7], [1, 21, 4], 1),
  "new badge, none set": cost([1, 1], [2, 19, 6], [1, 21, 4]),
  "login (existing badge)": cost([1, 1], [1, 8, 0]),
  "login with newer metadata": cost([1, 1], [2, 15, 3], [1, 21, 2]),
  signature: cost([1, 1], [1, 6, 0]),
  "page of 100": cost([1, 1], [1, 101, 0]),
  "invitation created": cost([1, 1], [1, 12, 10], [1, 18, 5]),
  /** By an application with a webhook URL. */
  "invitation claimed": cost([1, 1], [2, 24, 12], [1, 24, 5], 1),
  "invitation revoked": cost([1, 1], [1, 19, 8], [1, 22, 5]),
  /** The alarm by which `MANY` invitations of one application end together: expired, and their numbers free again. */
  "invitation expired, 20 at once": cost([0, 0], [2, 247, 141], [1, 202, 83]),
  "delivery, alone in its batch": cost([1, 1], [2, 23, 1], [0, 0, 0], 2),
  "delivery, 20 a batch": cost([1, 20], [2, 308, 20], [0, 0, 0], 40),
  /** An event's first attempt, which fails; it sends the wake-up of the next one. */
  "failed attempt, alone": cost([1, 1], [2, 23, 2], [0, 0, 0], 3),
  "failed attempt, 20 a batch": cost([1, 20], [2, 308, 40], [0, 0, 0], 60),
};

/** What nobody's call causes. */
export const BACKGROUND_COSTS = {
  /** A tick of a home's clock that finds nothing to do: so much, and for each application so much more. */
  idleTick: cost([1, 0], [13, 40, 3], [1, 0, 0]),
  idleTickOfApplication: cost([0, 0], [0, 6, 0]),
  /** An allocator's alarm a minute after `MANY` badges; it looks at the oldest 1,000 entries of the log at most. */
  alarm: cost([0, 0], [1, 1, 0], [1, 38, 2]),
  /** What the platform bills for an alarm that is set: no cursor shows it, so it is not counted but taken from the price list. */
  setAlarm: cost([0, 0], [0, 0, 0], [0, 0, 1]),
  /**
   * A deleted row is billed like a written one, and so is its place in each index. These follow from the tables and are not counted:
   * an entry; a delivered event, which is in no index; an invitation with its key and three indexes; a history row with its key and
   * two.
   */
  deletedEntry: cost([0, 0], [0, 0, 0], [0, 1, 1]),
  deletedEvent: cost([0, 0], [0, 1, 1]),
  deletedInvitation: cost([0, 0], [0, 1, 5]),
  deletedHistory: cost([0, 0], [0, 1, 4]),
  scannedRow: cost([0, 0], [0, 1, 0]),
};
