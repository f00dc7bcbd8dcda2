import { eventIdPrefix } from "../shared/identifiers.ts";
import { RETENTION_FIRST_LOOK_ROWS, SWEEP_CHUNK_ROWS, UNDELIVERED_RETENTION_FACTOR } from "../shared/limits.ts";
import type { Context } from "./context.ts";
import {
  type Deletable,
  deleteChunk,
  deleteOldest,
  findApplications,
  oldEvents,
  oldInvitations,
  type Stretch,
} from "./storage/retention.ts";

/**
 * What is over is deleted some time after (contract section 18). Every sweep looks at the oldest rows of each application,
 * where what is due nearly always is. What must stay may lie before it, and reading all of that each minute would cost more
 * the longer the service runs; so the other rows are looked at once a day, those of one day of making at one minute: day
 * number modulo 1,440.
 */

interface Deleted {
  deleted: number;
  isFinished: boolean;
}

/** One chunk of a kind's rows at each call. */
type Walk = (context: Context) => Promise<Deleted>;

const DAY_MILLISECONDS = 24 * 3600 * 1000;
const MINUTE_MILLISECONDS = 60 * 1000;
const MINUTES_OF_A_DAY = 1440;
/** The year of release 1.0: nothing is older. */
const FIRST_DAY = Date.UTC(2026, 0, 1) / DAY_MILLISECONDS;

export const walkOldEvents = (): Walk =>
  walkOf(
    ({ retention, now }) => {
      const { eventDays } = retention;
      if (eventDays === null) throw new Error("EVENT_RETENTION_DAYS is not a number of days");
      const madeBefore = (days: number) => eventIdPrefix(Math.max(0, now() - Math.round(days * DAY_MILLISECONDS)));
      const undelivered = madeBefore(eventDays * UNDELIVERED_RETENTION_FACTOR);
      return oldEvents({ delivered: madeBefore(eventDays), undelivered });
    },
    (milliseconds) => eventIdPrefix(milliseconds),
  );

export const walkOldInvitations = (): Walk =>
  walkOf(
    ({ retention, now }) => {
      const { invitationDays } = retention;
      if (invitationDays === null) throw new Error("INVITATION_RETENTION_DAYS is not a number of days");
      return oldInvitations(now() - Math.round(invitationDays * DAY_MILLISECONDS));
    },
    (milliseconds) => milliseconds,
  );

/** @param keyAt the first key of rows that were made at a time */
function walkOf(deletableAt: (context: Context) => Deletable, keyAt: (milliseconds: number) => string | number): Walk {
  let stretches: Stretch[] | undefined;
  let isLookingFirst = true;
  return async (context) => {
    const deletable = deletableAt(context);
    if (isLookingFirst) {
      const deleted = await deleteOldest(context.db, deletable, RETENTION_FIRST_LOOK_ROWS);
      isLookingFirst = deleted > 0;
      return { deleted, isFinished: false };
    }
    stretches ??= await findStretches(context, deletable, keyAt);
    const stretch = stretches.shift();
    if (!stretch) return { deleted: 0, isFinished: true };
    const { deleted, rest } = await deleteChunk(context.db, deletable, stretch, SWEEP_CHUNK_ROWS);
    if (rest) stretches.unshift(rest);
    return { deleted, isFinished: stretches.length === 0 };
  };
}

/** In random order and from a random hour on: a sweep that cannot finish leaves others out each time. */
async function findStretches(
  { db, now }: Context,
  deletable: Deletable,
  keyAt: (milliseconds: number) => string | number,
): Promise<Stretch[]> {
  const minute = Math.floor(now() / MINUTE_MILLISECONDS) % MINUTES_OF_A_DAY;
  const stretches: Stretch[] = [];
  const firstDay = FIRST_DAY + ((((minute - FIRST_DAY) % MINUTES_OF_A_DAY) + MINUTES_OF_A_DAY) % MINUTES_OF_A_DAY);
  for (let day = firstDay; day * DAY_MILLISECONDS < now(); day += MINUTES_OF_A_DAY) {
    const [start, end] = [keyAt(day * DAY_MILLISECONDS), keyAt((day + 1) * DAY_MILLISECONDS)];
    if (start >= deletable.before) break;
    const to = end < deletable.before ? end : deletable.before;
    const middle = keyAt(day * DAY_MILLISECONDS + Math.floor(Math.random() * DAY_MILLISECONDS));
    for (const applicationId of await findApplications(db, deletable, { from: start, to })) {
      if (middle < to) stretches.push({ applicationId, from: middle, to });
      stretches.push({ applicationId, from: start, to: middle < to ? middle : to });
    }
  }
  return stretches
    .map((stretch) => ({ stretch, place: Math.random() }))
    .sort((one, other) => one.place - other.place)
    .map(({ stretch }) => stretch);
}
