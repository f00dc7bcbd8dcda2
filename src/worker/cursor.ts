import { base64Url } from "../shared/identifiers.ts";

/** Cursors are opaque to callers: base64url of a text that names the list and the position. */
export const encodeCursorText = (text: string): string => base64Url(new TextEncoder().encode(text));

/** @returns the empty text if the cursor is not base64url */
export function decodeCursorText(cursor: string): string {
  if (!/^[\w-]+$/.test(cursor)) return "";
  try {
    return atob(cursor.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return "";
  }
}
