import { calculateJwkThumbprint, compactVerify, importJWK } from "jose";
import { digestOf } from "../../shared/identifiers.ts";
import { PROOF_WINDOW_SECONDS } from "../../shared/limits/key-limits.ts";
import { checkNonce } from "./nonce.ts";
import { type FormFailure, type ProofClaims, type PublicJwk, parseProof } from "./parse.ts";
import { normalizeUrl } from "./url.ts";

/** The call that a proof must be made for. */
export interface ProvenCall {
  /** As sent; methods are case-sensitive (RFC 9110 section 9.1). */
  method: string;
  /** See `callUrls`. */
  urls: readonly string[];
  /** The `aud` that a proof must name; a proof for another application is refused. */
  applicationId: string;
  /** The bearer value that `ath` covers, in place of an access token. */
  udid: string;
  /** `digestOf` the received body; of no bytes without a body. */
  bodyHash: string;
  /** Milliseconds since 1970-01-01 UTC, by the service's clock. */
  now: number;
  /** The application's root key, under which its nonces are made. */
  nonceKey: CryptoKey;
}

/** The caller holds the private half of this key. */
export interface AcceptedProof {
  ok: true;
  /** RFC 7638, SHA-256, base64url: 43 characters. */
  thumbprint: string;
  /** Its required members only, in the order of RFC 7638, as in `cnf`. */
  jwk: PublicJwk;
}

/** A key whose private half the caller has proved to hold. */
export type ProvenKey = Pick<AcceptedProof, "thumbprint" | "jwk">;

/** `reason` is for tests and for the log, never for the caller. */
export interface RefusedProof {
  ok: false;
  reason: ProofFailure;
  code: (typeof PROOF_FAILURE_CODES)[ProofFailure];
  /** Thumbprint of the key, if the proof is valid but not fresh. */
  thumbprint: string | null;
}

/** Why a proof was refused, in the order of the checks: those of RFC 9449 section 4.3, `wrong-audience` and `wrong-body`. */
export type ProofFailure =
  | FormFailure
  | "wrong-signature"
  | "wrong-method"
  | "wrong-url"
  | "wrong-audience"
  | "wrong-udid"
  | "wrong-body"
  | "stale-nonce"
  | "stale-iat";

/** The public code of each failure. */
export const PROOF_FAILURE_CODES = {
  oversized: "INVALID_PROOF",
  "several-headers": "INVALID_PROOF",
  "malformed-jws": "INVALID_PROOF",
  "malformed-header": "INVALID_PROOF",
  "critical-extension": "INVALID_PROOF",
  "wrong-type": "INVALID_PROOF",
  "wrong-algorithm": "INVALID_PROOF",
  "private-key": "INVALID_PROOF",
  "wrong-key": "INVALID_PROOF",
  "malformed-claims": "INVALID_PROOF",
  "wrong-signature": "INVALID_PROOF",
  "wrong-method": "INVALID_PROOF",
  "wrong-url": "INVALID_PROOF",
  "wrong-audience": "INVALID_PROOF",
  "wrong-udid": "INVALID_PROOF",
  "wrong-body": "INVALID_PROOF",
  "stale-nonce": "USE_DPOP_NONCE",
  "stale-iat": "USE_DPOP_NONCE",
} as const satisfies Record<ProofFailure, "INVALID_PROOF" | "USE_DPOP_NONCE">;

/**
 * Checks a proof of possession (RFC 9449 section 4.3, contract section 15): it must be well-formed, signed by its own
 * key, made for exactly this call, and fresh. No state is kept, so an unchanged call may be repeated while its proof is fresh.
 * Freshness is checked last, because USE_DPOP_NONCE promises that the proof is otherwise valid.
 *
 * @param proof the `DPoP` header as received, repeated headers joined by commas
 */
export async function verifyDpopProof(proof: string, call: ProvenCall): Promise<AcceptedProof | RefusedProof> {
  const parsed = parseProof(proof);
  if (typeof parsed === "string") return refused(parsed);
  const { jwk, claims } = parsed;
  const failure = (await checkSignature(proof, jwk)) ?? (await checkClaims(claims, call));
  if (failure !== null) return refused(failure);
  const thumbprint = await calculateJwkThumbprint(jwk);
  const staleness = await checkFreshness(claims, call);
  return staleness === null ? { ok: true, thumbprint, jwk } : { ...refused(staleness), thumbprint };
}

async function checkSignature(proof: string, jwk: PublicJwk): Promise<ProofFailure | null> {
  // Refuses a point that is not on the curve.
  const key = await importJWK(jwk, "ES256").catch(() => null);
  if (key === null) return "wrong-key";
  return compactVerify(proof, key, { algorithms: ["ES256"] }).then(
    () => null,
    () => "wrong-signature",
  );
}

async function checkClaims(claims: ProofClaims, { method, urls, applicationId, udid, bodyHash }: ProvenCall) {
  if (claims.htm !== method) return "wrong-method";
  const url = normalizeUrl(claims.htu);
  if (url === null || !urls.some((called) => normalizeUrl(called) === url)) return "wrong-url";
  if (claims.aud !== applicationId) return "wrong-audience";
  if (claims.ath !== (await digestOf(udid))) return "wrong-udid";
  return claims.body_hash === bodyHash ? null : "wrong-body";
}

/** A nonce that is present must be valid, even when `iat` is fresh (RFC 9449 section 4.3). */
async function checkFreshness({ nonce, iat }: ProofClaims, { nonceKey, now }: ProvenCall) {
  if (nonce !== undefined) return (await checkNonce(nonceKey, nonce, now)) ? null : "stale-nonce";
  return Math.abs(Math.floor(now / 1000) - iat) <= PROOF_WINDOW_SECONDS ? null : "stale-iat";
}

function refused(reason: ProofFailure): RefusedProof {
  return { ok: false, reason, code: PROOF_FAILURE_CODES[reason], thumbprint: null };
}
