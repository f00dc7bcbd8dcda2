import { describeError } from "../command-line/errors.ts";

/** What a check found. `warning`: nothing is broken yet, but somebody should look at it by day. */
export interface Finding {
  check: string;
  state: "ok" | "warning" | "error";
  detail: string;
  /** What to do; null when there is nothing. */
  advice: string | null;
}

/** One check. An error that it throws is a finding, and the other checks go on. */
export interface Check {
  name: string;
  run(): Promise<Omit<Finding, "check">>;
}

export const ok = (detail: string): Omit<Finding, "check"> => ({ state: "ok", detail, advice: null });
export const warning = (detail: string, advice: string): Omit<Finding, "check"> => ({
  state: "warning",
  detail,
  advice,
});
export const failure = (detail: string, advice: string): Omit<Finding, "check"> => ({ state: "error", detail, advice });

/** Runs all checks at once. @returns what they found, in their order */
export const runChecks = (checks: readonly Check[]): Promise<Finding[]> =>
  Promise.all(
    checks.map(async ({ name, run }) => {
      try {
        return { check: name, ...(await run()) };
      } catch (error) {
        return { check: name, ...failure(describeError(error), "Correct that, and run the command again.") };
      }
    }),
  );
