import { PLATFORM_TRIES } from "../../src/shared/limits/platform-limits.ts";
import type { AroundTrip, Statement } from "./d1.ts";
import type { Answer } from "./http.ts";

/** Before: it never happened. After: it happened, and the answer was lost. */
export type Moment = "before" | "after";

/** A fault: what the platform says, how often, and whether the service's own tries get over it. */
export interface Kind {
  name: string;
  times: number;
  error: Error;
  isOvercome: boolean;
}

export const LOST = Object.assign(new Error("Network connection lost."), { retryable: true });

const FOR_GOOD = "once, for good";

const KINDS: readonly Kind[] = [
  { name: "once, retryably", times: 1, error: LOST, isOvercome: true },
  { name: "for as long as one request tries", times: PLATFORM_TRIES, error: LOST, isOvercome: false },
  { name: FOR_GOOD, times: 1, error: new Error("D1_ERROR: no such table: badge"), isOvercome: false },
];

const MOMENTS: readonly Moment[] = ["before", "after"];
/** Each kind at each moment. */
export const CASES = MOMENTS.flatMap((moment) => KINDS.map((kind) => ({ moment, kind })));

export const LOCKED = new Error("D1_ERROR: database is locked: SQLITE_BUSY");

/** Of a statement that only reads: D1 itself repeats it, and the service does so only while a local database is locked. */
const READ_KINDS: readonly Kind[] = [
  ...KINDS.map((kind) => (kind.error === LOST ? { ...kind, error: LOCKED } : kind)),
  { name: "once, after D1's own tries", times: 1, error: LOST, isOvercome: false },
];

export const READ_CASES = MOMENTS.flatMap((moment) => READ_KINDS.map((kind) => ({ moment, kind })));

/** What the client of a badge is answered, one try after the other, when the first one's work was done or not. */
export function expectedStatuses({ isOvercome }: Kind, isDone: boolean): number[] {
  if (isOvercome) return [201, 200];
  return isDone ? [503, 200, 200] : [503, 201, 200];
}

/** Fails what it is put around, as often and as the kind says; everything that follows goes through. */
export function failing(
  { times, error }: Kind,
  moment: Moment,
): <Result>(act: () => Promise<Result>) => Promise<Result> {
  let failures = 0;
  return async (act) => {
    if (failures >= times) return act();
    failures++;
    if (moment === "after") await act();
    throw error;
  };
}

/** @param text of a statement, in any case and without the quotes that Drizzle puts around names */
/** Whether a statement of a trip has this text in it; names in SQL are compared without their quotes. */
export const isAbout = (statements: readonly Statement[], text: string) =>
  statements.some(({ sql }) => sql.replaceAll('"', "").toLowerCase().includes(text.toLowerCase()));

/** Fails the trips to D1 that have this text in them. */
export function failingTrips(text: string, kind: Kind, moment: Moment): AroundTrip {
  const fail = failing(kind, moment);
  return (statements, send) => (isAbout(statements, text) ? fail(send) : send());
}

export const statusesOf = (answers: readonly Answer[]) => answers.map(({ status }) => status);
