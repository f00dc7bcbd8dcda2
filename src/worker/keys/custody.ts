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

/** An opened key, and where the sealed value belongs. */
interface OpenedKey {
  applicationId: string;
  id: string;
  key: CryptoKey;
}

/** What a sealed value is opened for. */
type Use = "sign" | "device" | "SHA-1" | "SHA-256";

/**
 * Opens sealed keys, once an isolate each, as non-extractable keys: the Worker can use them and cannot show them. An
 * opened key is found by its sealed text and returned only for the row that it was opened for: a value that was copied
 * into another row is opened under the label of that row, which fails.
 */
export class Custody {
  readonly #sealingKeys: SealingKeys;
  readonly #opened: Readonly<Record<Use, BoundedCache<OpenedKey>>> = {
    sign: new BoundedCache(MAX_CACHED_KEYS),
    device: new BoundedCache(MAX_CACHED_KEYS),
    "SHA-1": new BoundedCache(MAX_CACHED_KEYS),
    "SHA-256": new BoundedCache(MAX_CACHED_KEYS),
  };

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
    use: Use,
    { applicationId, id }: SealLabel,
    { sealed, sealingVersion }: Sealed,
    unwrap: (privateKey: CryptoKey) => Promise<CryptoKey>,
  ): Promise<CryptoKey> {
    const opened = this.#opened[use];
    const known = opened.get(sealed);
    if (known && known.applicationId === applicationId && known.id === id) return known.key;
    try {
      const key = await this.#sealingKeys.open(sealingVersion, unwrap);
      opened.set(sealed, { applicationId, id, key });
      return key;
    } catch (error) {
      throw new Unavailable("key custody", error);
    }
  }
}
