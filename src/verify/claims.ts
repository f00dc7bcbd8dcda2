import { parseJsonObject } from "./encoding.ts";

/** No sign, no leading zero; 2^53 - 1, the largest badge number, has 16 digits (contract section 1). */
const BADGE_NUMBER = /^[1-9][0-9]{0,15}$/;

/** The claims of a badge signature (contract section 3). */
export interface BadgeClaims {
  badgeNumber: string;
  audience: string;
  issuedAtSeconds: number;
  /** Null if there is none; the service sets none. */
  notBeforeSeconds: number | null;
  /** Null if the application has no signature lifetime. */
  expiresAtSeconds: number | null;
  clientSignature: string;
}

/**
 * Reads the claims of a verified JWT; null if one is missing or invalid. Unknown claims are ignored (RFC 7519 section 4).
 */
export function parseClaims(payload: Uint8Array<ArrayBuffer>): BadgeClaims | null {
  const claims = parseJsonObject(payload);
  if (claims === null) return null;
  const { sub, aud, iat, nbf, exp, client_signature: clientSignature } = claims;
  if (!isBadgeNumber(sub)) return null;
  // RFC 7519 section 4.1.3 also allows a list; the service sets a single application.
  if (typeof aud !== "string" || typeof clientSignature !== "string") return null;
  if (!isWholeSeconds(iat)) return null;
  if (nbf !== undefined && !isWholeSeconds(nbf)) return null;
  if (exp !== undefined && !isWholeSeconds(exp)) return null;
  return {
    badgeNumber: sub,
    audience: aud,
    issuedAtSeconds: iat,
    notBeforeSeconds: nbf ?? null,
    expiresAtSeconds: exp ?? null,
    clientSignature,
  };
}

function isBadgeNumber(value: unknown): value is string {
  return typeof value === "string" && BADGE_NUMBER.test(value) && Number.isSafeInteger(Number(value));
}

/** RFC 7519 allows fractions of a second; the service never sets one, so it would be the sign of another issuer. */
function isWholeSeconds(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
