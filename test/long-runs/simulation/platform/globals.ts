import * as nodeCrypto from "node:crypto";
import { toBase64 } from "../../../../src/shared/sealing.ts";
import type { Outgoing } from "./network.ts";
import { requireProcess } from "./process.ts";

/**
 * Puts the simulation in the place of everything that the service takes from its surroundings: the clock, randomness,
 * timers, the network and the log. Whoever else asks for time or chance is told that no seed decides it.
 */
export function installGlobals(): void {
  Date.now = () => requireProcess().now;
  Math.random = () => requireProcess().world.serviceDice.next();
  AbortSignal.timeout = timeoutSignal;
  const log = (...words: unknown[]) => {
    const { world, name } = requireProcess();
    world.trace.add(name, `log ${words.join(" ")}`);
  };
  Object.assign(console, { log, warn: log, error: log });
  const replaced = {
    crypto: simulatedCrypto,
    caches: { default: null },
    fetch: (url: URL, init: Outgoing) => requireProcess().world.network.fetch(requireProcess(), url.href, init),
    scheduler: { wait: (milliseconds: number) => requireProcess().sleep(milliseconds) },
    setTimeout: (callback: () => void, milliseconds: number) => requireProcess().setTimer(callback, milliseconds),
    clearTimeout: (clear: () => void) => clear(),
  };
  Object.defineProperties(globalThis, Object.getOwnPropertyDescriptors(replaced));
}

/** `AbortSignal.timeout` in virtual time. */
function timeoutSignal(milliseconds: number): AbortSignal {
  const controller = new AbortController();
  const abort = () => controller.abort(new DOMException("The operation timed out.", "TimeoutError"));
  void requireProcess().sleep(milliseconds).then(abort);
  return controller.signal;
}

/**
 * WebCrypto whose work is done when it returns: the real one computes on other threads, and which of two is ready first
 * no seed decides.
 */
const simulatedCrypto = {
  subtle: {
    digest: async (_algorithm: "SHA-256", bytes: Uint8Array) =>
      buffer(nodeCrypto.createHash("sha256").update(bytes).digest()),
    sign: async (_algorithm: unknown, key: nodeCrypto.webcrypto.CryptoKey, bytes: Uint8Array) =>
      buffer(signWith(key, bytes)),
    timingSafeEqual: nodeCrypto.timingSafeEqual,
  },
  getRandomValues: (bytes: Uint8Array) => {
    const { serviceDice } = requireProcess().world;
    bytes.set(bytes.map(() => serviceDice.below(256)));
    return bytes;
  },
  randomUUID: () => String(requireProcess().world.serviceDice.next()),
};

export type HmacHash = "SHA-1" | "SHA-256";

export const hmacKey = (secret: string, hash: HmacHash): CryptoKey =>
  nodeCrypto.createSecretKey(Buffer.from(secret)).toCryptoKey({ name: "HMAC", hash }, true, ["sign"]);

/** Made once for all seeds. */
const pairs: ReturnType<typeof makePair>[] = [];

/** An ECDSA P-256 pair; the public key as SPKI DER, base64. Its bytes differ in every run: nothing depends on them. */
function makePair() {
  const { publicKey, privateKey } = nodeCrypto.generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    publicKey: toBase64(publicKey.export({ type: "spki", format: "der" })),
    privateKey: privateKey.toCryptoKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign"]),
  };
}

export function signingPair(place: number) {
  pairs[place] ??= makePair();
  return pairs[place];
}

function signWith(cryptoKey: nodeCrypto.webcrypto.CryptoKey, bytes: Uint8Array): Buffer {
  const key = nodeCrypto.KeyObject.from(cryptoKey);
  if (key.type === "private") return nodeCrypto.sign("sha256", bytes, { key, dsaEncoding: "ieee-p1363" });
  const hash = JSON.stringify(cryptoKey.algorithm).includes("SHA-1") ? "sha1" : "sha256";
  return nodeCrypto.createHmac(hash, key).update(bytes).digest();
}

const buffer = (bytes: Buffer): ArrayBuffer => new Uint8Array(bytes).buffer;
