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
  "new badge, webhook URL set": cost([1, 1], [2, 13, 8], [1, 11, 1], 1),
  "new badge, none set": cost([1, 1], [2, 12, 6], [1, 11, 1]),
  "login (existing badge)": cost([1, 1], [1, 7, 0]),
  "login with newer metadata": cost([1, 1], [3, 23, 3], [1, 11, 1]),
  signature: cost([1, 1], [1, 5, 0]),
  "page of 100": cost([1, 1], [1, 101, 0]),
  "invitation created": cost([1, 1], [2, 11, 10], [1, 11, 1]),
  /** By an application with a webhook URL. */
  "invitation claimed": cost([1, 1], [3, 32, 13], [1, 11, 1], 1),
  "invitation revoked": cost([1, 1], [2, 25, 8], [1, 11, 1]),
  /** What `MANY` invitations of one application that ended add to a tick: expired, and their numbers given back. */
  "invitation expired, 20 at once": cost([0, 0], [4, 504, 141], [1, 11, 1]),
  "delivery, alone in its batch": cost([1, 1], [2, 20, 2], [0, 0, 0], 2),
  "delivery, 20 a batch": cost([1, 20], [2, 286, 40], [0, 0, 0], 40),
  /** The first failed attempt of an endpoint that was well; it sends the wake-up of the next one. */
  "failed attempt, alone": cost([1, 1], [2, 24, 4], [0, 0, 0], 3),
  "failed attempt, 20 a batch": cost([1, 20], [2, 290, 61], [0, 0, 0], 60),
};

/** What nobody's call causes. */
export const BACKGROUND_COSTS = {
  /** A tick of a home's clock that finds nothing to do: so much, and for each application so much more. */
  idleTick: cost([1, 0], [10, 39, 1], [1, 0, 0]),
  idleTickOfApplication: cost([0, 0], [0, 4, 0]),
  /** The clock looks for commands of the script. */
  look: cost([0, 0], [1, 3, 0], [1, 0, 0]),
  /** The alarm of an application's object, two minutes after an entry. */
  alarm: cost([0, 0], [1, 1, 0], [1, 8, 0]),
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
  nothing: NOTHING,
};
