import { decodeBase64Url, parseJsonObject } from "./encoding.ts";

/** The parts of a compact JWS, not yet verified. */
export interface CompactJws {
  header: Record<string, unknown>;
  /** Not parsed until the signature is verified. */
  payload: Uint8Array<ArrayBuffer>;
  signature: Uint8Array<ArrayBuffer>;
  /** What the signature covers: the first two parts exactly as sent (RFC 7515 section 5.2 step 8). */
  signingInput: Uint8Array<ArrayBuffer>;
}

/**
 * Splits a compact JWS (RFC 7515 section 7.1): three parts of strict base64url, the first a JSON object. Null for anything
 * else, and for more characters than the limit.
 */
export function splitCompactJws(jwt: string, maxCharacters: number): CompactJws | null {
  // Callers in JavaScript may pass a missing value.
  if (typeof jwt !== "string" || jwt.length > maxCharacters) return null;
  const [headerText, payloadText, signatureText, ...more] = jwt.split(".");
  if (headerText === undefined || payloadText === undefined || signatureText === undefined || more.length > 0) {
    return null;
  }
  const headerBytes = decodeBase64Url(headerText);
  const payload = decodeBase64Url(payloadText);
  const signature = decodeBase64Url(signatureText);
  const header = headerBytes && parseJsonObject(headerBytes);
  if (header === null || payload === null || signature === null) return null;
  const signingInput = new Uint8Array(new TextEncoder().encode(`${headerText}.${payloadText}`));
  return { header, payload, signature, signingInput };
}
