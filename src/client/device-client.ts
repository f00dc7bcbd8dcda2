import { toBase64 } from "./base64.ts";
import type { CallOptions, ClientOptions } from "./options.ts";
import { read } from "./reading.ts";
import { readIssuedBadge, signature } from "./responses.ts";
import { Transport } from "./transport.ts";
import type { BadgeRequest, IssuedBadge } from "./types.ts";

/** The application on one user's device. It needs no secret, and must not contain one. */
export interface DeviceClientOptions extends ClientOptions {
  /** Identifies the device for good: 1 to 255 printable ASCII characters that nobody else can guess. */
  udid: string;
}

/** For apps on devices: gets a badge, and has its signatures made. */
export class DeviceClient {
  readonly #transport: Transport;
  readonly #udid: string;

  constructor({ udid, ...options }: DeviceClientOptions) {
    this.#transport = new Transport(options);
    this.#udid = udid;
  }

  /**
   * Gets the user's badge on this device. Safe to repeat: every call returns the same number. `sign` uses the badge that
   * was requested last.
   *
   * @throws BadgeServiceError (`isRefusedBadge` if the badge is not active or the user is blocked), NoResponseError or the
   *   signal's reason
   */
  requestBadge(request: BadgeRequest, { signal }: CallOptions = {}): Promise<IssuedBadge> {
    const { userId, metadata, invitationToken } = request;
    return this.#transport.call({
      method: "POST",
      path: "/v1/badge",
      headers: { udid: this.#udid },
      body: { userId, metadata, invitationToken },
      read: ({ status, body }) => readIssuedBadge(status, body),
      signal,
    });
  }

  /**
   * Exchanges the device's signature for the service's.
   *
   * @param clientSignature what the building defines, at most 4,096 bytes: as bytes, or as base64 with padding
   * @returns a compact JWS, which a door verifies offline (`@badge-distribution/verify`)
   * @throws BadgeServiceError (`isRefusedBadge` if the badge is not active), NoResponseError or the signal's reason
   */
  sign(clientSignature: string | Uint8Array, { signal }: CallOptions = {}): Promise<string> {
    const base64 = typeof clientSignature === "string" ? clientSignature : toBase64(clientSignature);
    return this.#transport.call({
      method: "POST",
      path: "/v1/badge/sign",
      headers: { udid: this.#udid },
      body: { base64 },
      read: ({ body }) => read(signature, body)?.signature ?? null,
      signal,
    });
  }
}
