import { createHash } from "node:crypto";

/**
 * The secrets of a deployed Worker that hold private halves of sealing keys. Each key's secret has a name of its own, of
 * version and fingerprint, so that two administrators who make the same version never overwrite each other's.
 */
export interface WorkerSecrets {
  put(name: string, value: string): Promise<void>;
  delete(name: string): Promise<void>;
  /** The names of all secrets. */
  list(): Promise<string[]>;
}

/** 64 bits, in hexadecimal: enough to tell keys of one version apart. */
const FINGERPRINT_DIGITS = 16;

/** @param publicKey SPKI DER, base64; its SHA-256 is the fingerprint */
export function sealingSecretName(version: number, publicKey: string): string {
  const fingerprint = createHash("sha256").update(Buffer.from(publicKey, "base64")).digest("hex");
  return `SEALING_KEY_${version}_${fingerprint.slice(0, FINGERPRINT_DIGITS)}`;
}

/** Whether a secret holds a key of this version. Those of release 1.0 have no fingerprint in their names. */
export function isSealingSecret(name: string, version: number): boolean {
  return name === `SEALING_KEY_${version}` || name.startsWith(`SEALING_KEY_${version}_`);
}
