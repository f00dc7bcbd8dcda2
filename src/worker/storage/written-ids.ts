import * as z from "zod";

const writtenRows = z.array(z.object({ written: z.string() }));

/** What a statement named `written` in its answer: the IDs of the rows that it wrote or found. */
export function writtenIds(result: D1Result | undefined): Set<string> {
  return new Set(writtenRows.parse(result?.results ?? []).map(({ written }) => written));
}
