import { type CompactVerifyGetKey, type CompactVerifyResult, compactVerify, errors } from "jose";
import * as z from "zod";
import { MAX_USER_TOKEN_CHARACTERS, USER_TOKEN_LEEWAY_SECONDS } from "../../shared/limits/user-token-limits.ts";
import { USER_TOKEN_ALGORITHMS } from "../../shared/openid/provider.ts";
import { parseJsonObject } from "../json-object.ts";

/** The application's requirements for tokens. */
interface TokenRules {
  issuer: string;
  /** One of the values of `aud`. */
  audience: string;
  /** The claim that contains the user ID. */
  claim: string;
}

/** The issuer confirms that this user has logged in. */
export interface VerifiedToken {
  ok: true;
  userId: string;
  /** Thumbprint of the key whose proof the call needs (`cnf.jkt`, RFC 9449 section 6.1); null if it needs none. */
  keyThumbprint: string | null;
}

/** `reason` is for tests and for the log, never for the caller. */
export interface RefusedToken {
  ok: false;
  reason: TokenFailure;
}

/** Reasons why a call has no verified user. The last four also depend on the call and the application. */
export type TokenFailure =
  | "oversized-token"
  | "malformed-token"
  | "token-algorithm"
  | "token-type"
  | "unknown-key"
  | "unusable-key"
  | "token-signature"
  | "token-claims"
  | "other-issuer"
  | "other-audience"
  | "expired-token"
  | "early-token"
  | "no-user-claim"
  | "no-token"
  | "other-user"
  | "other-key"
  | "no-issuer";

/**
 * Checks a user token: an ID token (OpenID Connect Core 1.0 section 3.1.3.7) or a JWT access token (RFC 9068 section 4).
 *
 * @param keys finds the issuer's key by the token's header
 * @param now milliseconds since 1970-01-01 UTC
 */
export async function verifyToken(
  token: string,
  keys: CompactVerifyGetKey,
  rules: TokenRules,
  now: number,
): Promise<VerifiedToken | RefusedToken> {
  if (token.length > MAX_USER_TOKEN_CHARACTERS) return refused("oversized-token");
  const verified = await verifySignature(token, keys);
  if (typeof verified === "string") return refused(verified);
  if (!isTokenType(verified.protectedHeader.typ)) return refused("token-type");
  const payload = parseJsonObject(verified.payload);
  if (payload === null) return refused("malformed-token");
  const parsed = claims.safeParse(payload);
  if (!parsed.success) return refused("token-claims");
  const failure = checkClaims(parsed.data, rules, now / 1000);
  if (failure !== null) return refused(failure);
  const userId = Object.hasOwn(payload, rules.claim) ? payload[rules.claim] : undefined;
  if (typeof userId !== "string" || userId === "") return refused("no-user-claim");
  return { ok: true, userId, keyThumbprint: parsed.data.cnf?.jkt ?? null };
}

async function verifySignature(token: string, keys: CompactVerifyGetKey): Promise<CompactVerifyResult | TokenFailure> {
  const options = { algorithms: [...USER_TOKEN_ALGORITHMS] };
  try {
    return await compactVerify(token, keys, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return failureOf(error);
    // Several keys fit a token without a key ID, or an ID that the issuer uses twice.
    for await (const key of error) {
      const verified = await compactVerify(token, key, options).catch(() => null);
      if (verified !== null) return verified;
    }
    return "unknown-key";
  }
}

function failureOf(error: unknown): TokenFailure {
  if (error instanceof errors.JWKSNoMatchingKey) return "unknown-key";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "token-signature";
  if (error instanceof errors.JOSEAlgNotAllowed) return "token-algorithm";
  if (error instanceof errors.JOSEError) return "malformed-token";
  // WebCrypto's error: the issuer has published an invalid or short key.
  return "unusable-key";
}

/**
 * A JWT by the same key for another purpose, such as a logout token, is not a user token (RFC 8725 section 3.11). Most
 * ID tokens have no type or `JWT`, access tokens have `at+jwt` (RFC 9068 section 2.1).
 */
function isTokenType(type: string | undefined): boolean {
  return type === undefined || /^(application\/)?(at\+)?jwt$/i.test(type);
}

const numericDate = z.number();

const claims = z.object({
  iss: z.string(),
  aud: z.union([z.string(), z.array(z.string())]),
  exp: numericDate,
  nbf: numericDate.optional(),
  iat: numericDate.optional(),
  // Only a key's thumbprint can be checked, so a token with another confirmation is refused.
  cnf: z.object({ jkt: z.string() }).optional(),
});

/** @param now seconds */
function checkClaims(
  { iss, aud, exp, nbf = 0, iat = 0 }: z.infer<typeof claims>,
  { issuer, audience }: TokenRules,
  now: number,
): TokenFailure | null {
  if (iss !== issuer) return "other-issuer";
  if (!(typeof aud === "string" ? aud === audience : aud.includes(audience))) return "other-audience";
  if (exp + USER_TOKEN_LEEWAY_SECONDS <= now) return "expired-token";
  const latest = now + USER_TOKEN_LEEWAY_SECONDS;
  return nbf > latest || iat > latest ? "early-token" : null;
}

const refused = (reason: TokenFailure): RefusedToken => ({ ok: false, reason });
