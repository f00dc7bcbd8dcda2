import { BadgeServiceError } from "../../client/index.ts";
import { explain } from "../parts/problems.ts";

/** The fields of the form, as they are labelled. */
export const ENTER_UNTIL = "Visitor may enter until";
export const SCAN_BY = "The code must be scanned by";

export interface InvitationProblem {
  /** The field to correct; null: none is wrong. */
  field: "end" | "scanBy" | null;
  text: string;
}

const DAY_MILLISECONDS = 24 * 3600 * 1000;
/** Contract section 5. */
const LONGEST_CODE_MILLISECONDS = 365 * DAY_MILLISECONDS;
/** Contract section 12. */
const LONGEST_BADGE_MILLISECONDS = 3650 * DAY_MILLISECONDS;

/** @param end of the badge; null: it has none @param now milliseconds since 1970 */
export function problemOf(end: Date | null, scanBy: Date, now: number): InvitationProblem | null {
  const inFuture = (time: Date, longest: number) => time.getTime() > now && time.getTime() <= now + longest;
  if (end !== null && !inFuture(end, LONGEST_BADGE_MILLISECONDS)) return END_PROBLEM;
  if (!inFuture(scanBy, LONGEST_CODE_MILLISECONDS)) return SCAN_PROBLEM;
  if (end !== null && end < scanBy) {
    return {
      field: "scanBy",
      text: `“${SCAN_BY}” is later than “${ENTER_UNTIL}”: the badge would have ended before. Choose an earlier time.`,
    };
  }
  return null;
}

/** Explains a refusal, at the field that caused it if there is one. */
export function problemOfError(error: unknown): InvitationProblem {
  const code = error instanceof BadgeServiceError ? error.code : null;
  if (code === "INVALID_BADGEEXPIRESAT") return END_PROBLEM;
  if (code === "INVALID_EXPIRESAT") return SCAN_PROBLEM;
  return { field: null, text: explain(error) };
}

const END_PROBLEM: InvitationProblem = {
  field: "end",
  text: `“${ENTER_UNTIL}”: choose a time in the future, at most ten years ahead.`,
};

const SCAN_PROBLEM: InvitationProblem = {
  field: "scanBy",
  text: `“${SCAN_BY}”: choose a time in the future, at most a year ahead.`,
};
