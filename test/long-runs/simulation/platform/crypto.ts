import {
  createHash,
  createHmac,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signWithKey,
  timingSafeEqual,
} from "node:crypto";
import { toBase64 } from "../../../../src/shared/sealing.ts";
import type { Dice } from "../../dice.ts";
import { standIn } from "./stand-in.ts";

/**
 * WebCrypto whose work is done when it returns: the real one computes on other threads, and which of two is ready first
 * no seed decides.
 */
const keyObjects = new WeakMap<CryptoKey, KeyObject>();

export function hmacKey(bytes: Uint8Array, hash: "SHA-1" | "SHA-256"): CryptoKey {
  const object = createSecretKey(bytes);
  const key: CryptoKey = object.toCryptoKey({ name: "HMAC", hash }, false, ["sign"]);
  keyObjects.set(key, object);
  return key;
}

export interface SigningPair {
  /** SPKI DER, base64. */
  publicKey: string;
  privateKey: CryptoKey;
}

/** An ECDSA P-256 pair. Its bytes are random for every run: nothing that happens depends on them. */
export function newSigningPair(): SigningPair {
  const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const privateKey: CryptoKey = pair.privateKey.toCryptoKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);
  keyObjects.set(privateKey, pair.privateKey);
  return { publicKey: toBase64(pair.publicKey.export({ type: "spki", format: "der" })), privateKey };
}

/** @param dice where random values come from */
export function simulatedCrypto(dice: () => Dice): Crypto {
  return standIn<Crypto>("crypto", {
    subtle: standIn<SubtleCrypto>("WebCrypto", {
      digest: async (_algorithm: "SHA-256", bytes: Uint8Array) => buffer(createHash("sha256").update(bytes).digest()),
      sign: async (_algorithm: unknown, key: CryptoKey, bytes: Uint8Array) => buffer(sign(key, bytes)),
      timingSafeEqual,
    }),
    getRandomValues: (bytes: Uint8Array) => {
      for (let index = 0; index < bytes.length; index++) bytes[index] = dice().below(256);
      return bytes;
    },
  });
}

function sign(key: CryptoKey, bytes: Uint8Array): Buffer {
  const object = keyObjects.get(key);
  if (!object) throw new Error("a key that the simulation did not make");
  const { algorithm } = key;
  if (algorithm.name === "ECDSA") return signWithKey("sha256", bytes, { key: object, dsaEncoding: "ieee-p1363" });
  const isSha1 = "hash" in algorithm && JSON.stringify(algorithm.hash).includes("SHA-1");
  return createHmac(isSha1 ? "sha1" : "sha256", object)
    .update(bytes)
    .digest();
}

function buffer(bytes: Buffer): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
