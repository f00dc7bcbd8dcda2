import { fromBase64, toBase64 } from "./base64.ts";
import { Bookmarks } from "./bookmarks.ts";
import { DpopSigner } from "./dpop-signer.ts";
import { KeyMismatchError } from "./errors.ts";
import { isObject, parseJson } from "./json.ts";
import type { CallOptions, ClientOptions } from "./options.ts";
import { pathSegment } from "./paths.ts";
import type { ProofKey } from "./proof-key.ts";
import { badge, object } from "./reading.ts";
import { type Call, Transport } from "./transport.ts";
import type { Badge, BadgeRequest, DescribedInvitation, ExistingBadge, IssuedBadge, NewBadge } from "./types.ts";

/** The application on one user's device. It needs no secret, and must not contain one. */
export interface DeviceClientOptions extends ClientOptions {
  /** Identifies the device for good: 1 to 255 printable ASCII characters that cannot be guessed. */
  udid: string;
  /**
   * Binds the badge to this key, which is used for nothing else: `webCryptoProofKey`, or a key of the platform's key store.
   * Keep the key, and pass it from the first `requestBadge` on. Every request that is sent needs a signature by it, retries
   * too, so it should not ask its user each time. Default: the badge is not bound.
   */
  proofKey?: ProofKey | undefined;
  /**
   * Rejects a badge that is not bound to the `proofKey`: such a badge was first requested without a key, by an earlier
   * version of the app or by a stranger who knows the udid. Turn it on once the application binds every badge. Default
   * false.
   */
  requireBound?: boolean | undefined;
  /** The `bookmark` of an earlier client of this device. Default: the primary database decides the first call. */
  bookmark?: string | undefined;
}

/** A login, with the identity provider's token. */
export interface LoginRequest extends BadgeRequest {
  /**
   * The ID token or JWT access token from the user's login (OpenID Connect), if the application verifies users.
   * The provider's library refreshes it; get it again for each call.
   */
  userToken?: string | undefined;
}

/** A call of the logged-in user. */
export interface UserCallOptions extends CallOptions {
  /** See `LoginRequest`. */
  userToken: string;
}

export interface SignOptions extends CallOptions {
  /** Number of the badge that signs. Default: the one that this client's last `requestBadge` returned. */
  badgeId?: string | undefined;
}

/** For apps on devices: gets a badge and its signatures. */
export class DeviceClient {
  readonly #transport: Transport;
  readonly #udid: string;
  readonly #signerFor: (bearer: string) => DpopSigner | null;
  readonly #dpopSigner: DpopSigner | null;
  readonly #requireBound: boolean;
  readonly #bookmarks: Bookmarks;
  /** Number of the last login's badge. While it is undefined, the service chooses the badge that signs. */
  #badgeId: string | undefined;
  #loginsBegun = 0;
  /** Which login `#badgeId` is of: concurrent responses may come in any order. */
  #lastLogin = 0;

  constructor({ udid, proofKey, requireBound = false, bookmark, ...options }: DeviceClientOptions) {
    this.#transport = new Transport(options);
    this.#udid = udid;
    this.#signerFor = (bearer) =>
      proofKey === undefined ? null : new DpopSigner(proofKey, options.applicationId, bearer, options.now ?? Date.now);
    this.#dpopSigner = this.#signerFor(udid);
    this.#requireBound = requireBound;
    this.#bookmarks = new Bookmarks(bookmark);
  }

  /**
   * Lets a nearby replica serve the next call. The client keeps and sends it. If the app's next client is to continue with it,
   * store it after each call. If it is undefined, as after a call without a response, delete the stored one.
   */
  get bookmark(): string | undefined {
    return this.#bookmarks.current;
  }

  /**
   * Gets the user's badge on this device. Safe to repeat: every call returns the same number. `sign` uses the badge of the
   * last successful call; after a failed one for another user, it goes on using the earlier user's. The call that creates the badge binds it to the `proofKey`.
   *
   * @throws BadgeServiceError (`isRefusedBadge` if the badge is not active or the user is blocked, `isRefusedUserToken` if a new
   *   user token is needed), NoResponseError or the signal's reason
   * @throws KeyMismatchError if the badge is bound to another key, or with `requireBound` to none; `sign` does not use it then
   */
  async requestBadge(request: LoginRequest, { signal }: CallOptions = {}): Promise<IssuedBadge> {
    const { userId, metadata, invitationToken, userToken } = request;
    const login = ++this.#loginsBegun;
    const issued = await this.#transport.call({
      method: "POST",
      path: "/v1/badge",
      headers: { udid: this.#udid, ...(userToken !== undefined && bearer(userToken)) },
      body: { userId, metadata, invitationToken },
      dpopSigner: this.#dpopSigner,
      bookmarks: this.#bookmarks,
      read: ({ status, body }) => readIssuedBadge(status, body),
      signal,
    });
    await this.#requireOwn(issued);
    if (login > this.#lastLogin) {
      this.#lastLogin = login;
      this.#badgeId = issued.badgeId;
    }
    return issued;
  }

  /** The first login decides the key of a badge, and a stranger who knows the udid may have been first. */
  async #requireOwn({ badgeId, keyThumbprint }: IssuedBadge): Promise<void> {
    const isUnbound = keyThumbprint === undefined;
    if (isUnbound && !this.#requireBound) return;
    if (isUnbound) throw new KeyMismatchError(badgeId, null);
    if (keyThumbprint !== (await this.#dpopSigner?.thumbprint())) throw new KeyMismatchError(badgeId, keyThumbprint);
  }

  /**
   * Exchanges the device's signature for the service's.
   *
   * @param clientSignature as the building defines it, at most 4,096 bytes: as bytes, or as base64 with padding
   * @returns a compact JWS, which a door verifies offline (`@badge-distribution/verify`)
   * @throws BadgeServiceError (`isRefusedBadge` if the badge is not active), NoResponseError or the signal's reason
   * @throws KeyMismatchError with `requireBound` if the badge that signed is not bound
   */
  async sign(
    clientSignature: string | Uint8Array,
    { badgeId = this.#badgeId, signal }: SignOptions = {},
  ): Promise<string> {
    const base64 = typeof clientSignature === "string" ? clientSignature : toBase64(clientSignature);
    const signature = await this.#transport.call({
      method: "POST",
      path: "/v1/badge/sign",
      headers: { udid: this.#udid },
      body: { base64, badgeId },
      dpopSigner: this.#dpopSigner,
      bookmarks: this.#bookmarks,
      read: ({ body }) => signed(body)?.signature ?? null,
      signal,
    });
    if (this.#requireBound) requireBinding(signature);
    return signature;
  }

  /**
   * Returns the visitor's name, place and times of an invitation, without claiming it; `requestBadge` does that.
   *
   * @param token the invitation's `id`
   * @throws BadgeServiceError (UNKNOWN_INVITATION), NoResponseError or the signal's reason
   */
  describeInvitation(token: string, { signal }: CallOptions = {}): Promise<DescribedInvitation> {
    return this.#transport.call({
      method: "GET",
      path: "/v1/invitation",
      headers: { invitationtoken: token },
      read: ({ body }) => describedInvitation(body),
      signal,
    });
  }

  /**
   * The active and suspended badges of the logged-in user, on all devices, newest first.
   *
   * @throws BadgeServiceError (`isRefusedUserToken` if a new user token is needed), NoResponseError or the signal's
   * reason
   */
  ownBadges({ userToken, signal }: UserCallOptions): Promise<Badge[]> {
    return this.#callAsUser(userToken, {
      method: "GET",
      path: "/v1/user/badges",
      read: ({ body }) => ownBadges(body)?.badges ?? null,
      signal,
    });
  }

  /**
   * Suspends a badge of the logged-in user, for example of a lost phone, from any other device. Only the application's
   * server resumes it.
   *
   * @returns the badge afterwards
   * @throws BadgeServiceError (`isRefusedUserToken` if a new user token is needed; UNKNOWN_BADGE, also of another
   * user's; ENDED_BADGE), NoResponseError or the signal's reason
   */
  async suspendOwn(badgeId: string, { userToken, signal }: UserCallOptions): Promise<Badge> {
    const suspended = await this.#callAsUser(userToken, {
      method: "PATCH",
      path: `/v1/user/badges/${pathSegment(badgeId)}/suspend`,
      read: ({ body }) => badge(body),
      signal,
    });
    // If it is this device's badge, a replica as old as the bookmark would still let it sign.
    this.#bookmarks.drop();
    return suspended;
  }

  /** Sends a proof for the token, which may be bound to the device's key. */
  #callAsUser<T>(userToken: string, call: Call<T>): Promise<T> {
    return this.#transport.call({ ...call, headers: bearer(userToken), dpopSigner: this.#signerFor(userToken) });
  }
}

const bearer = (userToken: string) => ({ authorization: `Bearer ${userToken}` });

/** @throws KeyMismatchError for a badge signature without `cnf`: the badge is not bound (contract section 15) */
function requireBinding(jwt: string): void {
  const [, payload = ""] = jwt.split(".");
  const bytes = fromBase64(payload.replaceAll("-", "+").replaceAll("_", "/")) ?? new Uint8Array();
  // React Native has no TextDecoder, and these two claims are ASCII.
  const claims = parseJson(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  const { sub, cnf } = isObject(claims) ? claims : {};
  if (cnf === undefined) throw new KeyMismatchError(String(sub), null);
}

const signed = object<{ signature: string }>({ signature: "string" });
const describedInvitation = object<DescribedInvitation>({
  state: "string",
  expiresAt: "string",
  applicationName: "string",
});
const ownBadges = object<{ badges: Badge[] }>({ badges: "array" });
const newBadge = object<NewBadge>({ badgeId: "string", publicKey: "string" });
const existingBadge = object<ExistingBadge>({ badgeId: "string" });

function readIssuedBadge(status: number, body: unknown): IssuedBadge | null {
  if (status === 201) {
    const badge = newBadge(body);
    return badge && { created: true, ...badge };
  }
  const badge = existingBadge(body);
  return badge && { created: false, ...badge };
}
