import { base64url } from "jose";
import * as z from "zod";
import { MAX_JTI_CHARACTERS, MAX_PROOF_CHARACTERS } from "../../shared/limits/key-limits.ts";
import { isObject, parseJsonObject } from "../json-object.ts";

/** Distinguishes a proof from every other JWT by the same key, such as a response to a door (RFC 8725 section 3.12). */
const PROOF_TYPE = "dpop+jwt";

/**
 * 32 bytes in base64url, with zero pad bits: each point has one text, so each key has one thumbprint
 * (RFC 7518 section 6.2.1.2, RFC 7638 section 7).
 */
const COORDINATE = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

const publicJwk = z.object({
  kty: z.literal("EC"),
  crv: z.literal("P-256"),
  x: z.string().regex(COORDINATE),
  y: z.string().regex(COORDINATE),
});
/** RFC 7517 sections 4.2 to 4.4: the key's purpose, if stated. */
const statedUse = z.object({
  use: z.literal("sig").optional(),
  key_ops: z
    .array(z.string())
    .refine((operations) => operations.includes("verify"))
    .optional(),
  alg: z.literal("ES256").optional(),
});
/** The private members of every kind of key (RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1). */
const PRIVATE_MEMBERS = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/** Only the members that RFC 7638 requires. They are stored, compared, and put into `cnf`. */
export type PublicJwk = z.infer<typeof publicJwk>;

const claims = z.object({
  aud: z.string(),
  jti: z.string().min(1).max(MAX_JTI_CHARACTERS),
  htm: z.string(),
  htu: z.string(),
  iat: z.number(),
  ath: z.string(),
  body_hash: z.string(),
  nonce: z.string().optional(),
});

/**
 * Other claims are ignored (RFC 9449 section 4.2), including `exp` and `nbf`, because the device's clock must not
 * decide.
 */
export type ProofClaims = z.infer<typeof claims>;

/** Reasons why a text is not a proof for any call, in the order of checks. */
export type FormFailure =
  | "oversized"
  | "several-headers"
  | "malformed-jws"
  | "malformed-header"
  | "critical-extension"
  | "wrong-type"
  | "wrong-algorithm"
  | "private-key"
  | "wrong-key"
  | "malformed-claims";

/** A proof's contents. Its signature is not verified yet. */
interface ParsedProof {
  jwk: PublicJwk;
  claims: ProofClaims;
}

/** Checks the form of a proof (RFC 9449 section 4.2). */
export function parseProof(text: string): ParsedProof | FormFailure {
  if (text.length > MAX_PROOF_CHARACTERS) return "oversized";
  // Repeated headers arrive joined by a comma, which no proof contains (RFC 9110 section 5.3).
  if (text.includes(",")) return "several-headers";
  const [headerBytes, payload, signature, ...more] = text.split(".").map(decodeBase64Url);
  if (!headerBytes || !payload || !signature || more.length > 0) return "malformed-jws";
  const jwk = parseHeader(headerBytes);
  if (typeof jwk === "string") return jwk;
  const parsed = claims.safeParse(parseJsonObject(payload));
  return parsed.success ? { jwk, claims: parsed.data } : "malformed-claims";
}

function parseHeader(bytes: Uint8Array): PublicJwk | FormFailure {
  const header = parseJsonObject(bytes);
  if (header === null) return "malformed-header";
  // This profile has no extensions; `b64` without `crit` is not allowed either (RFC 7515 section 4.1.11, RFC 7797).
  if (Object.hasOwn(header, "crit") || Object.hasOwn(header, "b64")) return "critical-extension";
  if (header.typ !== PROOF_TYPE) return "wrong-type";
  if (header.alg !== "ES256") return "wrong-algorithm";
  const { jwk } = header;
  if (!isObject(jwk)) return "wrong-key";
  if (PRIVATE_MEMBERS.some((name) => Object.hasOwn(jwk, name))) return "private-key";
  const parsed = publicJwk.safeParse(jwk);
  return parsed.success && statedUse.safeParse(jwk).success ? parsed.data : "wrong-key";
}

/** Base64url without padding (RFC 7515 section 2); null for any other spelling of the same bytes. */
function decodeBase64Url(text: string): Uint8Array | null {
  try {
    const bytes = base64url.decode(text);
    return base64url.encode(bytes) === text ? bytes : null;
  } catch {
    return null;
  }
}
