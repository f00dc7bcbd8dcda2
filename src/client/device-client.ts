import { type BadgeRequest, type IssuedBadge, readIssuedBadge, readSignature } from "./answers.ts";
import { toBase64 } from "./base64.ts";
import { type CallOptions, type ClientOptions, Transport } from "./transport.ts";

/** A device of the application's users. It needs no secret, and must not have one. */
export interface DeviceClientOptions extends ClientOptions {
  /** Names the device for good: 1 to 255 printable ASCII characters that nobody else can guess. */
  udid: string;
}

/** What an app on a device calls: get a badge, and have the badge signed. */
export class DeviceClient {
  readonly #transport: Transport;
  readonly #udid: string;

  constructor({ udid, ...options }: DeviceClientOptions) {
    this.#transport = new Transport(options);
    this.#udid = udid;
  }

  /**
   * Asks for the user's badge on this device: the same number at every call, which is therefore safe to repeat. It
   * becomes the badge that `sign` uses.
   *
   * @throws BadgeServiceError, NoAnswerError or the signal's reason
   */
  requestBadge(request: BadgeRequest, { signal }: CallOptions = {}): Promise<IssuedBadge> {
    const { userId, metadata, invitationToken } = request;
    return this.#transport.call({
      method: "POST",
      path: "/v1/badge",
      headers: { udid: this.#udid },
      body: { userId, metadata, invitationToken },
      repeatable: "always",
      read: ({ status, body }) => readIssuedBadge(status, body),
      signal,
    });
  }

  /**
   * Exchanges the device's signature for the service's.
   *
   * @param clientSignature what the building asks for, at most 4,096 bytes: the bytes, or their base64 with padding
   * @returns a compact JWS, which a door verifies offline (`verifyBadgeSignature`)
   * @throws BadgeServiceError, NoAnswerError or the signal's reason
   */
  sign(clientSignature: string | Uint8Array, { signal }: CallOptions = {}): Promise<string> {
    const base64 = typeof clientSignature === "string" ? clientSignature : toBase64(clientSignature);
    return this.#transport.call({
      method: "POST",
      path: "/v1/badge/sign",
      headers: { udid: this.#udid },
      body: { base64 },
      repeatable: "always",
      read: ({ body }) => readSignature(body),
      signal,
    });
  }
}
