import { describeError } from "../command-line/errors.ts";

/** What a check found. `look`: nothing is broken yet; somebody should look at it by day. */
export interface Finding {
  check: string;
  state: "ok" | "look" | "broken";
  detail: string;
  /** What to do; null when there is nothing. */
  advice: string | null;
}

/** A check by itself: its error is a finding, and the others go on. */
export interface Check {
  name: string;
  run(): Promise<Omit<Finding, "check">>;
}

export const fine = (detail: string): Omit<Finding, "check"> => ({ state: "ok", detail, advice: null });
export const look = (detail: string, advice: string): Omit<Finding, "check"> => ({ state: "look", detail, advice });
export const broken = (detail: string, advice: string): Omit<Finding, "check"> => ({ state: "broken", detail, advice });

/** Runs all checks at once. @returns what they found, in their order */
export const runChecks = (checks: readonly Check[]): Promise<Finding[]> =>
  Promise.all(
    checks.map(async ({ name, run }) => {
      try {
        return { check: name, ...(await run()) };
      } catch (error) {
        return { check: name, ...broken(describeError(error), "Correct that, and run the command again.") };
      }
    }),
  );
