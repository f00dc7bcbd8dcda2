import type { ApplicationId } from "../../shared/identifiers.ts";
import { MAX_CACHED_KEYS } from "../../shared/limits/cache-limits.ts";
import { type SealLabel, unwrapHmacKey, unwrapSigningKey } from "../../shared/sealing.ts";
import { LruCache } from "../lru-cache.ts";
import { Unavailable } from "../platform.ts";
import type { SealingKeys } from "./sealing-keys.ts";

/** A sealed value as D1 stores it. */
export interface Sealed {
  sealed: string;
  sealingVersion: number;
}

/** An opened key, and its row. */
interface OpenedKey {
  applicationId: ApplicationId;
  id: string;
  key: CryptoKey;
}

/** The purpose and label of a sealed value. */
type Use = "sign" | "root" | "SHA-1" | "SHA-256";

/**
 * Opens each sealed key once per isolate, as a non-extractable key: the Worker can use it but not reveal it. The cache
 * is keyed by the sealed text, and a hit counts only for the same row. A value that was copied into another row is
 * opened with that row's label, which fails.
 */
export class UnsealedKeys {
  readonly #sealingKeys: SealingKeys;
  readonly #opened: Readonly<Record<Use, LruCache<OpenedKey>>> = {
    sign: new LruCache(MAX_CACHED_KEYS),
    root: new LruCache(MAX_CACHED_KEYS),
    "SHA-1": new LruCache(MAX_CACHED_KEYS),
    "SHA-256": new LruCache(MAX_CACHED_KEYS),
  };

  constructor(sealingKeys: SealingKeys) {
    this.#sealingKeys = sealingKeys;
  }

  /** The ECDSA P-256 key that signs badges under this key ID. */
  signingKey(applicationId: ApplicationId, kid: string, sealed: Sealed): Promise<CryptoKey> {
    const label: SealLabel = { purpose: "signing-key", applicationId, id: kid };
    return this.#open("sign", label, sealed, (privateKey) => unwrapSigningKey(privateKey, label, sealed.sealed));
  }

  /** The HMAC-SHA-256 key that digests the udids of an application. */
  rootKey(applicationId: ApplicationId, sealed: Sealed): Promise<CryptoKey> {
    const label: SealLabel = { purpose: "device-key", applicationId, id: applicationId };
    return this.#open("root", label, sealed, (privateKey) =>
      unwrapHmacKey(privateKey, label, sealed.sealed, "SHA-256"),
    );
  }

  /** An application secret as the key of a webhook signature. */
  webhookKey(
    applicationId: ApplicationId,
    secretId: string,
    sealed: Sealed,
    hash: "SHA-1" | "SHA-256",
  ): Promise<CryptoKey> {
    const label: SealLabel = { purpose: "application-secret", applicationId, id: secretId };
    return this.#open(hash, label, sealed, (privateKey) => unwrapHmacKey(privateKey, label, sealed.sealed, hash));
  }

  /** @throws Unavailable when the sealing key is missing, or the value was not sealed for this label */
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
      throw new Unavailable("sealed key", error);
    }
  }
}
