import { zValidator } from "@hono/zod-validator";
import type * as z from "zod";
import type { ErrorCode } from "../../shared/error-table.ts";
import { ApiError } from "../api-error.ts";
import type { CursorCodec } from "../cursor.ts";

/** The error code of each query parameter, in the order of checks. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  per_page: "INVALID_PER_PAGE",
  // A repeated cursor; other invalid cursors are refused when they are decoded.
  cursor: "INVALID_CURSOR",
  state: "INVALID_STATE",
  order: "INVALID_STATE",
  q: "INVALID_NAME",
  endsBefore: "INVALID_EXPIRESAT",
  from: "INVALID_EXPIRESAT",
  since: "INVALID_EXPIRESAT",
  until: "INVALID_EXPIRESAT",
  badge: "UNKNOWN_BADGE",
  user: "INVALID_USERID",
  actor: "INVALID_ACTOR",
  action: "INVALID_STATE",
};

/** Reads the query of a list, and ignores unknown parameters. */
export const readQuery = <Schema extends z.ZodType>(schema: Schema) =>
  zValidator("query", schema, (result) => {
    if (result.success) return;
    const faulty = new Set(result.error.issues.map(({ path }) => path[0]));
    const first = Object.entries(CODES).find(([parameter]) => faulty.has(parameter));
    if (!first) throw new Error("an invalid parameter has no error code");
    throw new ApiError(first[1]);
  });

/** A time of a query in milliseconds; null if it is missing. */
export const readTime = (time: string | undefined): number | null => (time === undefined ? null : Date.parse(time));

/** @returns null on the first page. @throws ApiError INVALID_CURSOR */
export function readCursor<Position>(codec: CursorCodec<Position>, cursor: string | undefined): Position | null {
  if (cursor === undefined) return null;
  const position = codec.decode(cursor);
  if (position === null) throw new ApiError("INVALID_CURSOR");
  return position;
}
