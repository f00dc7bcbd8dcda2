import type { Statement } from "./d1.ts";
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

export const LOCKED = new Error("D1_ERROR: database is locked: SQLITE_BUSY");

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

/** Whether a statement of a trip has this text in it; names in SQL are compared without their quotes. */
export const isAbout = (statements: readonly Statement[], text: string) =>
  statements.some(({ sql }) => sql.replaceAll('"', "").toLowerCase().includes(text.toLowerCase()));

export const statusesOf = (answers: readonly Answer[]) => answers.map(({ status }) => status);
