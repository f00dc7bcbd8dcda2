import { decodeBase64, isCoordinate, isJsonObject } from "./encoding.ts";
import type { JwkSet, SinglePublicKey } from "./types.ts";

const ECDSA_P256 = { name: "ECDSA", namedCurve: "P-256" } as const;
/** r, then s, 32 octets each (RFC 7518 section 3.4). */
const SIGNATURE_BYTES = 64;

/**
 * Chooses the key that verifies a JWT: from a set, the one with the JWT's `kid`. A single key is used whatever `kid` says,
 * because `kid` is only a hint (RFC 7515 section 4.1.4).
 *
 * @returns null if there is none, or none that the runtime can import
 */
export async function trustedKey(keys: JwkSet | SinglePublicKey, keyId: string): Promise<CryptoKey | null> {
  try {
    return "publicKey" in keys ? await importSpki(keys.publicKey) : await importFromSet(keys.keys, keyId);
  } catch {
    // Not DER, another curve, or a point off the curve. Each runtime throws another error.
    return null;
  }
}

/** Whether `signature` is ES256 over `data` (RFC 7518 section 3.4): 64 octets, not DER. */
export async function isEs256Signature(
  key: CryptoKey,
  signature: Uint8Array<ArrayBuffer>,
  data: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  if (signature.byteLength !== SIGNATURE_BYTES) return false;
  return await crypto.subtle.verify({ name: "ECDSA", hash: "SHA-256" }, key, signature, data);
}

async function importSpki(publicKey: string): Promise<CryptoKey | null> {
  const der = decodeBase64(publicKey);
  return der && (await probe(await crypto.subtle.importKey("spki", der, ECDSA_P256, false, ["verify"])));
}

async function importFromSet(candidates: readonly unknown[], keyId: string): Promise<CryptoKey | null> {
  for (const candidate of candidates) {
    const point = isJsonObject(candidate) && candidate.kid === keyId ? es256Point(candidate) : null;
    if (point) return await importPoint(point);
  }
  return null;
}

/**
 * Imports only the public point, so that it can only become a P-256 verification key. Null for a point that is not on the
 * curve, and for coordinates in another encoding, which some runtimes import.
 */
export async function importPoint({ x, y }: { x: string; y: string }): Promise<CryptoKey | null> {
  if (!isCoordinate(x) || !isCoordinate(y)) return null;
  const jwk = { kty: "EC", crv: "P-256", x, y };
  return await crypto.subtle.importKey("jwk", jwk, ECDSA_P256, false, ["verify"]).then(probe, () => null);
}

/** Null for a point off the curve in Deno, which imports any point and throws only when it verifies. */
async function probe(key: CryptoKey): Promise<CryptoKey | null> {
  const verified = isEs256Signature(key, new Uint8Array(SIGNATURE_BYTES), new Uint8Array());
  return await verified.then(
    () => key,
    () => null,
  );
}

/** The coordinates of a JWK that may verify ES256; null for any other. */
function es256Point(jwk: Record<string, unknown>): { x: string; y: string } | null {
  // RFC 7518 section 6.2.1: key type and curve.
  if (jwk.kty !== "EC" || jwk.crv !== "P-256") return null;
  // RFC 7517 sections 4.2 to 4.4: the intended use, if stated.
  if (jwk.use !== undefined && jwk.use !== "sig") return null;
  if (jwk.key_ops !== undefined && !(Array.isArray(jwk.key_ops) && jwk.key_ops.includes("verify"))) return null;
  if (jwk.alg !== undefined && jwk.alg !== "ES256") return null;
  return typeof jwk.x === "string" && typeof jwk.y === "string" ? { x: jwk.x, y: jwk.y } : null;
}
