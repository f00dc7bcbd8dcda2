import type { IssuedRow, Rows } from "./rows.ts";
import type { Verdict } from "./verdict.ts";

/** All pages of a list, read one after the other. */
export interface Walk {
  applicationId: string;
  /** Null: of the whole application. */
  userId: string | null;
  from: number;
  to: number;
  numbers: readonly number[];
}

/** A badge that exists all the time of a walk appears exactly once, whatever comes and goes meanwhile (section 4). */
export function checkWalk(rows: Rows, verdict: Verdict, walk: Walk): void {
  const { applicationId, userId, from, to, numbers } = walk;
  const listed = new Set(numbers);
  verdict.expect(listed.size === numbers.length, "no badge appears twice", () => numbers.join(", "));
  const isAsked = (row: IssuedRow) => userId === null || row.userId === userId;
  const all = rows.liveDuring(applicationId, from, to, "all").filter(isAsked);
  const missing = all.filter(({ number }) => !listed.has(number));
  verdict.expect(missing.length === 0, "a badge that exists all the time is listed", () => JSON.stringify(missing));
  const some = new Set(
    rows
      .liveDuring(applicationId, from, to, "some")
      .filter(isAsked)
      .map(({ number }) => number),
  );
  const foreign = numbers.filter((number) => !some.has(number));
  verdict.expect(foreign.length === 0, "only live badges are listed", () => foreign.join(", "));
}
