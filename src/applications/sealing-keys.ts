import { derivePublicKey, importSealingPrivateKey } from "./sealing.ts";

const SECRET_NAME = /^SEALING_KEY_([1-9]\d*)$/;

/** The private sealing keys that this Worker holds, by version. */
export class SealingKeys {
  readonly #pkcs8 = new Map<number, string>();
  readonly #imported = new Map<number, CryptoKey>();
  readonly #public = new Map<number, CryptoKey>();

  constructor(env: object) {
    for (const [name, value] of Object.entries(env)) {
      const version = SECRET_NAME.exec(name)?.[1];
      if (version !== undefined && typeof value === "string") this.#pkcs8.set(Number(version), value);
    }
  }

  has(version: number): boolean {
    return this.#pkcs8.has(version);
  }

  /** The public half, from the private one: whoever can write to D1 must not choose what values are sealed to. */
  async getPublic(version: number): Promise<CryptoKey> {
    const known = this.#public.get(version);
    if (known) return known;
    const key = await derivePublicKey(this.#secret(version));
    this.#public.set(version, key);
    return key;
  }

  /** @throws when this Worker has no such secret: a deployment is half-way, or the secret was deleted too early */
  async get(version: number): Promise<CryptoKey> {
    const known = this.#imported.get(version);
    if (known) return known;
    const key = await importSealingPrivateKey(this.#secret(version));
    this.#imported.set(version, key);
    return key;
  }

  #secret(version: number): string {
    const pkcs8 = this.#pkcs8.get(version);
    if (pkcs8 === undefined) throw new Error(`the Worker has no secret SEALING_KEY_${version}`);
    return pkcs8;
  }
}
