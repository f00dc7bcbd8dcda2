import { type CompactVerifyGetKey, type CompactVerifyResult, compactVerify, errors } from "jose";
import * as z from "zod";
import { MAX_USER_TOKEN_CHARACTERS, USER_TOKEN_LEEWAY_SECONDS } from "../../shared/limits.ts";
import { USER_TOKEN_ALGORITHMS } from "../../shared/openid/provider.ts";
import { parseJsonObject } from "../json-object.ts";

/** What a token must say, by the application's settings. */
interface TokenRules {
  issuer: string;
  /** One of the values of `aud`. */
  audience: string;
  /** The claim that contains the user ID. */
  claim: string;
}

/** The issuer says that this user has logged in. */
export interface VerifiedToken {
  ok: true;
  userId: string;
  /** Of the key whose proof the call must have (`cnf.jkt`, RFC 9449 section 6.1); null: it needs none. */
  keyThumbprint: string | null;
}

/** `reason` is for tests and for the log, never for the caller. */
export interface RefusedToken {
  ok: false;
  reason: TokenFailure;
}

/** Why a call has no verified user. The last four depend on the call and on the application, not on the token alone. */
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
    // Several keys fit a token that names none, or an ID that the issuer uses twice.
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
  // WebCrypto's: the issuer has published a key that is none, or too short.
  return "unusable-key";
}

/**
 * A JWT for another purpose by the same key, such as a logout token, is no user token (RFC 8725 section 3.11). Most ID tokens
 * have no type or `JWT`, access tokens have `at+jwt` (RFC 9068 section 2.1).
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
  // A confirmation by anything else than a key's thumbprint cannot be checked, so the token is not accepted as a bearer's.
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
