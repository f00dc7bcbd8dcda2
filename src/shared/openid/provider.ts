import * as z from "zod";
import { MAX_ISSUER_KEYS } from "../limits/user-token-limits.ts";
import { type FetchRules, fetchJson, ProviderError } from "./fetch-json.ts";

/** The algorithms of user tokens (contract section 22): asymmetric ones only. */
export const USER_TOKEN_ALGORITHMS = ["ES256", "ES384", "RS256", "PS256", "EdDSA"] as const;

const discoveryDocument = z.object({ issuer: z.string(), jwks_uri: z.string() });

/**
 * The URL of an issuer's keys, from its discovery document (OpenID Connect Discovery 1.0 section 4).
 *
 * @throws ProviderError also if the document names another issuer (section 4.3)
 */
export async function discoverKeySet(issuer: string, rules: FetchRules): Promise<string> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const parsed = discoveryDocument.safeParse(await fetchJson(url, rules));
  if (!parsed.success) throw new ProviderError("malformed", url);
  const { issuer: named, jwks_uri: keySetUrl } = parsed.data;
  if (named !== issuer) throw new ProviderError("other-issuer", url, named);
  return keySetUrl;
}

const commonMembers = {
  kid: z.string().exactOptional(),
  use: z.literal("sig").exactOptional(),
  key_ops: z.array(z.string()).exactOptional(),
  alg: z.enum(USER_TOKEN_ALGORITHMS).exactOptional(),
};
/** Only public members (RFC 7518 section 6, RFC 8037), for the key types of the algorithms. */
const verificationKey = z.union([
  z.object({ ...commonMembers, kty: z.literal("EC"), crv: z.enum(["P-256", "P-384"]), x: z.string(), y: z.string() }),
  z.object({ ...commonMembers, kty: z.literal("RSA"), n: z.string(), e: z.string() }),
  z.object({ ...commonMembers, kty: z.literal("OKP"), crv: z.literal("Ed25519"), x: z.string() }),
]);
type VerificationKey = z.infer<typeof verificationKey>;

const keySet = z.object({ keys: z.array(z.unknown()) });

/**
 * The keys that verify an issuer's tokens. Keys for other purposes are left out.
 *
 * @returns at least one key, and the number of keys left out after the first `MAX_ISSUER_KEYS`
 * @throws ProviderError
 */
export async function fetchVerificationKeys(
  issuer: string,
  rules: FetchRules,
): Promise<{ keys: VerificationKey[]; leftOut: number }> {
  const url = await discoverKeySet(issuer, rules);
  const parsed = keySet.safeParse(await fetchJson(url, rules));
  if (!parsed.success) throw new ProviderError("malformed", url);
  const found = parsed.data.keys.flatMap((key) => verificationKey.safeParse(key).data ?? []);
  const keys = found.slice(0, MAX_ISSUER_KEYS);
  if (keys.length === 0) throw new ProviderError("no-usable-key", url);
  return { keys, leftOut: found.length - keys.length };
}
