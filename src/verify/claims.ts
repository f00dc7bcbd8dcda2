import { isCoordinate, isJsonObject, isWholeNumber, parseJsonObject } from "./encoding.ts";
import type { BoundKey } from "./types.ts";

/** No sign, no leading zero; 2^53 - 1, the largest badge number, has 16 digits (contract section 1). */
const BADGE_NUMBER = /^[1-9][0-9]{0,15}$/;

/** The claims of a badge signature (contract section 3). */
export interface BadgeClaims {
  badgeNumber: string;
  audience: string;
  issuedAtSeconds: number;
  /** The badge's start (contract section 24); null if it has none. */
  notBeforeSeconds: number | null;
  /** Null if the application has no signature lifetime. */
  expiresAtSeconds: number | null;
  clientSignature: string;
  /** Null if the application has no status lists. */
  status: StatusReference | null;
  /** Null if the badge is not bound (contract section 15). */
  boundKey: BoundKey | null;
}

/** Where to find the badge's status (contract section 14). */
export interface StatusReference {
  /** URI of the status list, exactly as the service wrote it. */
  uri: string;
  index: number;
}

/**
 * Reads the claims of a verified JWT; null if one is missing or invalid. Unknown claims are ignored (RFC 7519 section 4).
 */
export function parseClaims(payload: Uint8Array<ArrayBuffer>): BadgeClaims | null {
  const claims = parseJsonObject(payload);
  if (claims === null) return null;
  const { sub, aud, iat, nbf, exp, client_signature: clientSignature, cnf } = claims;
  if (!isBadgeNumber(sub)) return null;
  // RFC 7519 section 4.1.3 also allows a list; the service sets a single application.
  if (typeof aud !== "string" || typeof clientSignature !== "string") return null;
  if (!isWholeNumber(iat)) return null;
  if (nbf !== undefined && !isWholeNumber(nbf)) return null;
  if (exp !== undefined && !isWholeNumber(exp)) return null;
  const status = parseStatus(claims.status);
  if (status === undefined) return null;
  const boundKey = cnf === undefined ? null : parseConfirmation(cnf);
  if (boundKey === undefined) return null;
  return {
    badgeNumber: sub,
    audience: aud,
    issuedAtSeconds: iat,
    notBeforeSeconds: nbf ?? null,
    expiresAtSeconds: exp ?? null,
    clientSignature,
    status,
    boundKey,
  };
}

/**
 * The `status` claim (draft-ietf-oauth-status-list section 6.1). Null if there is none; undefined if it is invalid, also
 * where it names only a mechanism that this verifier does not know.
 */
function parseStatus(status: unknown): StatusReference | null | undefined {
  if (status === undefined) return null;
  const reference = isJsonObject(status) ? status.status_list : undefined;
  if (!isJsonObject(reference)) return undefined;
  const { idx, uri } = reference;
  return isWholeNumber(idx) && typeof uri === "string" ? { uri, index: idx } : undefined;
}

/**
 * Reads `cnf` (RFC 7800 section 3.2); undefined if it has no P-256 key. A confirmation that is not understood must not
 * make a bound badge look unbound.
 */
function parseConfirmation(cnf: unknown): BoundKey | undefined {
  const jwk = isJsonObject(cnf) ? cnf.jwk : undefined;
  if (!isJsonObject(jwk) || jwk.kty !== "EC" || jwk.crv !== "P-256") return undefined;
  const { x, y } = jwk;
  return isCoordinate(x) && isCoordinate(y) ? { kty: "EC", crv: "P-256", x, y } : undefined;
}

function isBadgeNumber(value: unknown): value is string {
  return typeof value === "string" && BADGE_NUMBER.test(value) && Number.isSafeInteger(Number(value));
}
