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
import { standIn } from "../../stand-in.ts";
import type { Outgoing } from "./network.ts";
import { requireProcess, runningProcess } from "./process.ts";

/**
 * Puts the simulation in the place of everything that the service takes from its surroundings: the clock, randomness,
 * timers, the network and the log. Code that belongs to no process of the service keeps the real ones.
 */
export function installGlobals(): void {
  const real = { now: Date.now, random: Math.random };
  Date.now = () => runningProcess()?.now ?? real.now();
  Math.random = () => runningProcess()?.world.serviceDice.next() ?? real.random();
  for (const [level, print] of Object.entries({ log: console.log, warn: console.warn, error: console.error })) {
    Reflect.set(console, level, (...words: unknown[]) => {
      const process = runningProcess();
      if (process) process.world.trace.add(process.name, `log ${words.join(" ")}`);
      else print(...words);
    });
  }
  replace("crypto", simulatedCrypto);
  replace("scheduler", { wait: (milliseconds: number) => requireProcess().sleep(milliseconds) });
  installTimers();
  replace("fetch", (url: string | URL, init: Outgoing) => {
    const process = requireProcess();
    return process.world.network.fetch(process, String(url), init);
  });
  Reflect.set(AbortSignal, "timeout", timeoutSignal);
}

/** `setTimeout` in virtual time; Node's own code and the simulation's keep the real one. */
function installTimers(): void {
  const real = { setTimeout, clearTimeout };
  const clears = new WeakMap<object, () => void>();
  replace("setTimeout", (callback: () => void, milliseconds: number, ...rest: unknown[]) => {
    const process = runningProcess();
    if (!process) return Reflect.apply(real.setTimeout, globalThis, [callback, milliseconds, ...rest]);
    const timer = {};
    clears.set(timer, process.setTimer(callback, milliseconds));
    return timer;
  });
  replace("clearTimeout", (timer: unknown) => {
    const clear = typeof timer === "object" && timer !== null ? clears.get(timer) : undefined;
    if (clear) clear();
    else Reflect.apply(real.clearTimeout, globalThis, [timer]);
  });
}

function replace(name: "crypto" | "scheduler" | "fetch" | "setTimeout" | "clearTimeout", value: object): void {
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
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
const simulatedCrypto = standIn<Crypto>("crypto", {
  subtle: standIn<SubtleCrypto>("WebCrypto", {
    digest: async (_algorithm: "SHA-256", bytes: Uint8Array) => buffer(createHash("sha256").update(bytes).digest()),
    sign: async (_algorithm: unknown, key: CryptoKey, bytes: Uint8Array) => buffer(sign(key, bytes)),
    timingSafeEqual,
  }),
  getRandomValues: (bytes: Uint8Array) => {
    const { serviceDice } = requireProcess().world;
    for (let index = 0; index < bytes.length; index++) bytes[index] = serviceDice.below(256);
    return bytes;
  },
});

const keyObjects = new WeakMap<CryptoKey, KeyObject>();

export function hmacKey(bytes: Uint8Array, hash: "SHA-1" | "SHA-256"): CryptoKey {
  const object = createSecretKey(bytes);
  const key: CryptoKey = object.toCryptoKey({ name: "HMAC", hash }, false, ["sign"]);
  keyObjects.set(key, object);
  return key;
}

/** An ECDSA P-256 pair; the public key as SPKI DER, base64. Its bytes differ in every run: nothing depends on them. */
export function newSigningPair(): { publicKey: string; privateKey: CryptoKey } {
  const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const privateKey: CryptoKey = pair.privateKey.toCryptoKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);
  keyObjects.set(privateKey, pair.privateKey);
  return { publicKey: toBase64(pair.publicKey.export({ type: "spki", format: "der" })), privateKey };
}

function sign(key: CryptoKey, bytes: Uint8Array): Buffer {
  const object = keyObjects.get(key);
  if (!object) throw new Error("a key that the simulation did not make");
  const { algorithm } = key;
  if (algorithm.name === "ECDSA") return signWithKey("sha256", bytes, { key: object, dsaEncoding: "ieee-p1363" });
  const isSha1 = "hash" in algorithm && JSON.stringify(algorithm.hash).includes("SHA-1");
  const hmac = createHmac(isSha1 ? "sha1" : "sha256", object);
  return hmac.update(bytes).digest();
}

const buffer = (bytes: Buffer): ArrayBuffer => new Uint8Array(bytes).buffer;
