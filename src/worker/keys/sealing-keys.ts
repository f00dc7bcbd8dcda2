import { derivePublicKey, exportDer, importSealingPrivateKey, toBase64 } from "../../shared/sealing.ts";

/** `SEALING_KEY_<version>_<fingerprint>`; local keys have no fingerprint in their names. */
const SECRET_NAME = /^SEALING_KEY_([1-9]\d*)(?:_[0-9a-f]+)?$/;

interface HeldKey {
  /** PKCS #8 DER, base64. */
  readonly pkcs8: string;
  /** Imported on first use. */
  privateKey?: CryptoKey;
  publicHalf?: { spki: string; key: CryptoKey };
}

/** The private sealing keys that this Worker holds. */
export class SealingKeys {
  /** By version. Two administrators who added a key at the same moment may have created one version twice. */
  readonly #held = new Map<number, readonly HeldKey[]>();

  constructor(env: object) {
    for (const [name, value] of Object.entries(env)) {
      const match = SECRET_NAME.exec(name);
      if (match === null || typeof value !== "string") continue;
      const version = Number(match[1]);
      this.#held.set(version, [...this.#heldOf(version), { pkcs8: value }]);
    }
  }

  /**
   * Opens a value that is sealed to a version. A sealed value names only its version, so every key of that version is
   * tried: OAEP rejects a wrong key.
   *
   * @param use opens the value with the given key, or throws
   * @throws if no key of that version opens it: a deployment is in progress, or the secret was deleted too early
   */
  async open<T>(version: number, use: (privateKey: CryptoKey) => Promise<T>): Promise<T> {
    let failure: unknown = new Error(`the Worker has no secret SEALING_KEY_${version} or SEALING_KEY_${version}_…`);
    for (const each of this.#heldOf(version)) {
      try {
        each.privateKey ??= await importSealingPrivateKey(each.pkcs8);
        return await use(each.privateKey);
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  /**
   * The public half to seal to, if this Worker holds the private half of exactly this key. It is derived from the
   * private half, so that write access to D1 is not enough to choose the key that values are sealed to.
   *
   * @param wanted D1's version, and its SPKI DER in base64
   */
  async findPublicKey(wanted: { version: number; publicKey: string }): Promise<CryptoKey | undefined> {
    for (const each of this.#heldOf(wanted.version)) {
      each.publicHalf ??= await derivePublicHalf(each.pkcs8);
      if (each.publicHalf.spki === wanted.publicKey) return each.publicHalf.key;
    }
    return undefined;
  }

  #heldOf(version: number): readonly HeldKey[] {
    return this.#held.get(version) ?? [];
  }
}

async function derivePublicHalf(pkcs8: string): Promise<{ spki: string; key: CryptoKey }> {
  const key = await derivePublicKey(pkcs8);
  return { spki: toBase64(await exportDer("spki", key)), key };
}
