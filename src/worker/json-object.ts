/** Throws on invalid UTF-8, and keeps a byte order mark so that JSON.parse refuses it (RFC 8259 section 8.1). */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * A JSON object from a part of a JWS; null for anything else. The last of duplicate members counts, as RFC 7515 section 4
 * allows: each part is parsed once, so all checks see the same value.
 */
export function parseJsonObject(bytes: Uint8Array): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes));
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
