/** Strict decoders: each value has exactly one text. A lenient decoder would accept the same signature in many spellings. */

const BASE64URL = /^[A-Za-z0-9_-]*$/;

/** 32 octets in base64url, with zero pad bits (RFC 7518 section 6.2.1.2). */
const COORDINATE = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** Throws on invalid UTF-8, and keeps a byte order mark so that JSON.parse refuses it (RFC 8259 section 8.1). */
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Standard padded base64 (RFC 4648 section 4); null for anything else. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | null {
  let binary: string;
  try {
    binary = atob(text);
  } catch {
    return null;
  }
  // `atob` accepts white space, missing padding and stray bits in the last character (RFC 4648 section 3.5).
  if (btoa(binary) !== text) return null;
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** Base64url without padding, as in JOSE (RFC 7515 section 2); null for anything else. */
export function decodeBase64Url(text: string): Uint8Array<ArrayBuffer> | null {
  if (!BASE64URL.test(text)) return null;
  const padding = "=".repeat((4 - (text.length % 4)) % 4);
  return decodeBase64(text.replaceAll("-", "+").replaceAll("_", "/") + padding);
}

/** Base64url without padding, as in JOSE (RFC 7515 section 2). */
export function encodeBase64Url(bytes: Uint8Array): string {
  const base64 = btoa(String.fromCharCode(...bytes));
  return base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/**
 * A JSON object in UTF-8; null for anything else. Of duplicate members the last one counts: RFC 7515 section 4 allows
 * that, or refusing them.
 */
export function parseJsonObject(bytes: Uint8Array<ArrayBuffer>): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(UTF8.decode(bytes));
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Whether a parsed value is an object: not an array, not null. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * A whole number from 0 to 2^53 - 1, such as a time or an index. RFC 7519 allows fractions of a second, but the service never
 * sends one, so it would be from another issuer.
 */
export function isWholeNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** A coordinate of a point on P-256. */
export function isCoordinate(value: unknown): value is string {
  return typeof value === "string" && COORDINATE.test(value);
}
