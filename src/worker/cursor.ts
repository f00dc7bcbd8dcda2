import { base64url } from "jose";
import * as z from "zod";

/** Encodes a list position as an opaque, URL-safe cursor. */
export interface CursorCodec<Position> {
  encode(position: Position): string;
  /** @returns null for a text that `encode` cannot have made, such as the cursor of another list */
  decode(cursor: string): Position | null;
}

/**
 * The cursors of one list: base64url of JSON.
 *
 * @param list the name that distinguishes its cursors from those of other lists
 */
export function cursorCodec<Position>(list: string, position: z.ZodType<Position>): CursorCodec<Position> {
  const content = z.tuple([z.literal(list), position]);
  // Parsing fixes the order of fields, so equal positions have equal text.
  const encode = (position: Position) => base64url.encode(JSON.stringify(content.parse([list, position])));
  const decode = (cursor: string) => {
    const parsed = content.safeParse(parseJson(cursor));
    if (!parsed.success) return null;
    const [, found] = parsed.data;
    // Rejects non-canonical encodings of a position.
    return encode(found) === cursor ? found : null;
  };
  return { encode, decode };
}

function parseJson(cursor: string): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(base64url.decode(cursor)));
  } catch {
    return undefined;
  }
}
