import { exportJWK, importSPKI, type JWK } from "jose";
import type { Application } from "../applications/application-cache.ts";

/**
 * The application's public keys as a JWK Set (RFC 7517 section 5): every key that was ever used, because a badge keeps
 * the key it was issued with. A disabled application keeps its set: doors still verify existing signatures.
 */
export async function publicJwks({ signingKeys }: Application): Promise<{ keys: JWK[] }> {
  const keys = signingKeys.map(async ({ kid, publicKey }) => {
    const key = await importSPKI(`-----BEGIN PUBLIC KEY-----\n${publicKey}\n-----END PUBLIC KEY-----`, "ES256", {
      extractable: true,
    });
    return { ...(await exportJWK(key)), kid, alg: "ES256", use: "sig" };
  });
  return { keys: await Promise.all(keys) };
}
