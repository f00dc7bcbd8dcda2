import { MAX_CACHED_KEYS } from "../../shared/limits.ts";
import { type SealLabel, unwrapHmacKey, unwrapSigningKey } from "../../shared/sealing.ts";
import { BoundedCache } from "../bounded-cache.ts";
import { Unavailable } from "../platform.ts";
import type { SealingKeys } from "./sealing-keys.ts";

/** A sealed value as D1 keeps it. */
export interface Sealed {
  sealed: string;
  sealingVersion: number;
}

/**
 * Opens sealed keys, once an isolate each, as non-extractable keys: the Worker can use them and cannot show them. The
 * cache key is the whole label and the sealed text: a value that was sealed anew is opened anew, and a value that was
 * copied into another row is opened under the label of that row, which fails.
 */
export class Custody {
  readonly #sealingKeys: SealingKeys;
  readonly #opened = new BoundedCache<CryptoKey>(MAX_CACHED_KEYS);

  constructor(sealingKeys: SealingKeys) {
    this.#sealingKeys = sealingKeys;
  }

  /** The ECDSA P-256 key that signs badges under this key ID. */
  signingKey(applicationId: string, kid: string, sealed: Sealed): Promise<CryptoKey> {
    const label: SealLabel = { purpose: "signing-key", applicationId, id: kid };
    return this.#open("sign", label, sealed, (privateKey) => unwrapSigningKey(privateKey, label, sealed.sealed));
  }

  /** The HMAC-SHA-256 key that digests the udids of an application. */
  deviceKey(applicationId: string, sealed: Sealed): Promise<CryptoKey> {
    const label: SealLabel = { purpose: "device-key", applicationId, id: applicationId };
    return this.#open("device", label, sealed, (privateKey) =>
      unwrapHmacKey(privateKey, label, sealed.sealed, "SHA-256"),
    );
  }

  /** An application secret as the key of a webhook signature. */
  webhookKey(applicationId: string, secretId: string, sealed: Sealed, hash: "SHA-1" | "SHA-256"): Promise<CryptoKey> {
    const label: SealLabel = { purpose: "application-secret", applicationId, id: secretId };
    return this.#open(hash, label, sealed, (privateKey) => unwrapHmacKey(privateKey, label, sealed.sealed, hash));
  }

  /** @throws Unavailable when the sealing key is missing or the blob does not open in this place */
  async #open(
    use: string,
    { purpose, applicationId, id }: SealLabel,
    sealed: Sealed,
    unwrap: (privateKey: CryptoKey) => Promise<CryptoKey>,
  ): Promise<CryptoKey> {
    // Injective, as in sealing.ts: none of the parts holds a line feed.
    const cacheKey = `${use}\n${purpose}\n${applicationId}\n${id}\n${sealed.sealed}`;
    const known = this.#opened.get(cacheKey);
    if (known) return known;
    try {
      const key = await this.#sealingKeys.open(sealed.sealingVersion, unwrap);
      this.#opened.set(cacheKey, key);
      return key;
    } catch (error) {
      throw new Unavailable("key custody", error);
    }
  }
}
