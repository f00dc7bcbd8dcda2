import { sha256 } from "./jws.ts";
import { createDpopProof } from "./proof.ts";
import type { ProofKey } from "./proof-key.ts";

/** How long the service accepts a nonce (contract section 15). */
const NONCE_LIFETIME_SECONDS = 300;

/** A request that is about to be sent. */
interface OutgoingRequest {
  method: string;
  /** As called. */
  url: string;
  /** Exactly what is sent. */
  body?: string;
}

/** The parts of a response that matter here. */
interface Response {
  status: number;
  headers: { get(name: string): string | null };
  /** The body's `error`, of any type. */
  error: unknown;
}

/** Makes the proofs of one device, or for one user token. It keeps the service's latest nonce, only in memory. */
export class DpopSigner {
  readonly #key: ProofKey;
  readonly #applicationId: string;
  readonly #bearer: string;
  readonly #now: () => number;
  #nonce: { value: string; takenAt: number } | null = null;

  /**
   * @param bearer what `ath` covers: the udid, or a user token
   * @param now milliseconds since 1970-01-01 UTC, by the device's clock, which may be wrong
   */
  constructor(key: ProofKey, applicationId: string, bearer: string, now: () => number) {
    this.#key = key;
    this.#applicationId = applicationId;
    // As it arrives: white space around a header's value is not part of it (RFC 9110 section 5.5).
    this.#bearer = bearer.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
    this.#now = now;
  }

  /**
   * Makes the value of the `DPoP` header for one sending of a request; each retry needs a new one.
   *
   * @throws RangeError if the key's `sign` does not return 64 bytes; also errors of `sign`
   */
  prove(request: OutgoingRequest): Promise<string> {
    const now = this.#now();
    return createDpopProof({
      ...request,
      key: this.#key,
      applicationId: this.#applicationId,
      udid: this.#bearer,
      nonce: this.#nonceAt(now),
      now,
    });
  }

  /** RFC 7638 thumbprint of the key. */
  thumbprint(): Promise<string> {
    const { crv, kty, x, y } = this.#key.publicJwk;
    // The required members in this order (RFC 7638 section 3.2).
    return sha256(JSON.stringify({ crv, kty, x, y }));
  }

  /**
   * Stores the nonce of a response that demands one (RFC 9449 section 8), because the device's clock is wrong or the request
   * took long. The next proof has it.
   *
   * @returns whether the response demands one
   */
  takeNonce({ status, headers, error }: Response): boolean {
    const value = headers.get("dpop-nonce");
    if (status !== 401 || error !== "USE_DPOP_NONCE" || value === null) return false;
    this.#nonce = { value, takenAt: this.#now() };
    return true;
  }

  /** Undefined once the nonce has expired: a proof without one may be accepted, because the clock may have been corrected. */
  #nonceAt(now: number): string | undefined {
    if (this.#nonce === null) return undefined;
    const ageSeconds = (now - this.#nonce.takenAt) / 1000;
    return ageSeconds >= 0 && ageSeconds < NONCE_LIFETIME_SECONDS ? this.#nonce.value : undefined;
  }
}
