import type { D1Result } from "@cloudflare/workers-types";
import * as z from "zod";

const writtenRows = z.array(z.object({ written: z.string() }));

/** The IDs that a statement returned in its column `written`. */
export function writtenIds(result: D1Result | undefined): Set<string> {
  return new Set(writtenRows.parse(result?.results ?? []).map(({ written }) => written));
}
