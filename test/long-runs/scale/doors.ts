import {
  DOOR_SEEN_WRITE_MILLISECONDS,
  LIVE_COMPARE_MILLISECONDS,
  LIVE_HOLD_MILLISECONDS,
} from "../../../src/shared/limits/live-limits.ts";
import { BACKGROUND_COSTS, type Cost, NOTHING } from "./cost.ts";
import { type Billed, billOf, OBJECT_SECONDS, total } from "./prices.ts";

/** What connected doors of one application cost in a month of 30 days (contract section 26). */

const MONTH_MILLISECONDS = 30 * 24 * 3600 * 1000;

/** Our assumption: status changes of an application, each of which ends every held call. */
const CHANGES_A_DAY = 100;

/** What doors cause: test/live/costs.test.ts asserts these rows on a real D1 and a real object. Alarms are not counted but set. */
export const LIVE_COSTS = {
  /** A door's call, in an isolate that has not read the application for a while. Its secret is not read again. */
  call: { ...NOTHING, invocations: 1, objectCalls: 1, d1RoundTrips: 1, d1RowsRead: 4 },
  /** The object's alarm reads the head, the changes of each list or a row that is none, and the doors that have a secret. */
  alarm: { ...NOTHING, objectCalls: 1, d1RoundTrips: 2, d1RowsRead: 2 },
  alarmOfDoor: { ...NOTHING, d1RowsRead: 1 },
  /** When a door has called is written every ten minutes. */
  seen: { ...NOTHING, objectRowsWritten: 1 },
} satisfies Record<string, Cost>;

/** As a table, for so many doors that are connected all month. @param logSample as LOG_SAMPLE */
export const doorsTable = (numbers: readonly number[], logSample: number): string[][] =>
  numbers.map((doors) => {
    const changes = CHANGES_A_DAY * 30;
    // Each is an invocation of the Worker and a connection to the object.
    const calls = doors * (MONTH_MILLISECONDS / LIVE_HOLD_MILLISECONDS + changes);
    const alarms = MONTH_MILLISECONDS / LIVE_COMPARE_MILLISECONDS + changes;
    const { call, alarm, alarmOfDoor, seen } = LIVE_COSTS;
    const billed: Billed[] = [
      [{ ...call, logLines: 1 / logSample }, calls],
      [alarm, alarms],
      [BACKGROUND_COSTS.setAlarm, alarms],
      [alarmOfDoor, alarms * doors],
      [seen, doors * (MONTH_MILLISECONDS / DOOR_SEEN_WRITE_MILLISECONDS)],
    ];
    const objectRequests = calls + alarms;
    // At the most: with so many doors the object never sleeps.
    const awakeHours = Math.min(objectRequests * OBJECT_SECONDS, MONTH_MILLISECONDS / 1000) / 3600;
    const dollars = total(billOf(billed, false)).toFixed(2);
    return [doors, calls, objectRequests, awakeHours]
      .map((figure) => Math.round(figure).toLocaleString("en"))
      .concat(dollars);
  });
