import { BadgePages } from "./badge-pages.ts";
import type { CallOptions, ClientOptions } from "./options.ts";
import { readBadges, readInvitation, readRevokedInvitation } from "./responses.ts";
import { Transport } from "./transport.ts";
import type { BadgePage, Invitation, InvitationRequest, RevokedInvitation } from "./types.ts";
import { type VerifiedWebhook, verifyWebhook, type WebhookRefused, type WebhookToVerify } from "./webhook.ts";

/** An application's server. */
export interface ServerClientOptions extends ClientOptions {
  /** Must not leave the server. */
  applicationSecret: string;
}

export interface ListQuery extends CallOptions {
  /** Lists only the badges of this user. */
  userId?: string;
  /** Badges per page, at most 1,000. Default 100. */
  perPage?: number;
}

export interface NewInvitation extends CallOptions {
  /** In the future, at most 365 days ahead. A string is ISO 8601 with a zone, and is returned unchanged. */
  expiresAt: InvitationRequest["expiresAt"] | Date;
  /** Identifies who invites: 1 to 255 printable ASCII characters. */
  udid: string;
}

/** For an application's server: lists badges, creates and revokes invitations, and verifies webhooks. */
export class ServerClient {
  readonly #transport: Transport;
  readonly #secret: string;

  constructor({ applicationSecret, ...options }: ServerClientOptions) {
    this.#transport = new Transport(options);
    this.#secret = applicationSecret;
  }

  /**
   * Lists badges page by page: `for await (const page of server.listBadges())`, or one by one with
   * `server.listBadges().badges()`. The iteration sends the requests and throws their errors.
   *
   * @throws RangeError for a `userId` that cannot be part of a path, or that is present but undefined, which would list
   *   everybody's badges
   */
  listBadges(query: ListQuery = {}): BadgePages {
    const { perPage, signal } = query;
    const path = "userId" in query ? `/v1/users/${pathSegment(query.userId)}/badges` : "/v1/badges";
    return new BadgePages((cursor) => this.#page(path, { per_page: perPage?.toString(), cursor }, signal));
  }

  /**
   * Reserves a number for a visitor. Retried only after 429 RATE_LIMITED: after 503 UNAVAILABLE or without a response a
   * number may be reserved already, and another call would reserve a second one. After 503 the service ends such an
   * invitation by itself within about an hour; if the response was lost, the number is released at `expiresAt`.
   *
   * @throws BadgeServiceError, NoResponseError or the signal's reason
   */
  async createInvitation({ expiresAt, udid, signal }: NewInvitation): Promise<Invitation> {
    return this.#transport.call({
      method: "POST",
      path: "/v1/invitation",
      headers: { ...this.#credentials(), udid },
      body: { expiresAt: typeof expiresAt === "string" ? expiresAt : expiresAt.toISOString() },
      repeatable: "if-refused",
      read: ({ body }) => readInvitation(body),
      signal,
    });
  }

  /**
   * Revokes an invitation that nobody has claimed, and releases its number. Repeating it returns the same result.
   *
   * @param id the invitation token
   * @throws BadgeServiceError, NoResponseError or the signal's reason
   */
  async revokeInvitation(id: string, { signal }: CallOptions = {}): Promise<RevokedInvitation> {
    return this.#transport.call({
      method: "PATCH",
      path: `/v1/invitation/${pathSegment(id)}/revoke`,
      headers: this.#credentials(),
      repeatable: "always",
      read: ({ body }) => readRevokedInvitation(body),
      signal,
    });
  }

  /** `verifyWebhook` with this client's secret by default. */
  verifyWebhook(
    webhook: Omit<WebhookToVerify, "secrets"> & Partial<Pick<WebhookToVerify, "secrets">>,
  ): Promise<VerifiedWebhook | WebhookRefused> {
    return verifyWebhook({ secrets: this.#secret, ...webhook });
  }

  #page(
    path: string,
    query: Record<string, string | null | undefined>,
    signal: CallOptions["signal"],
  ): Promise<BadgePage> {
    return this.#transport.call({
      method: "GET",
      path: `${path}${queryText(query)}`,
      headers: this.#credentials(),
      repeatable: "always",
      read: ({ body, headers }) => {
        const badges = readBadges(body);
        return badges && { badges, nextCursor: headers.get("pagination-cursor") };
      },
      signal,
    });
  }

  #credentials(): Record<string, string> {
    return { applicationsecret: this.#secret };
  }
}

/**
 * Encodes one segment of a path. "." and ".." cannot be encoded: `fetch` resolves them even if percent-encoded (URL
 * Standard, path state), and the request for one user's badges would list everybody's.
 */
function pathSegment(text: string | undefined): string {
  if (text === undefined || text === "" || text === "." || text === "..") {
    throw new RangeError(`${text === undefined ? "undefined" : `"${text}"`} cannot be part of a path`);
  }
  return encodeURIComponent(text);
}

/** Written by hand because React Native's URLSearchParams is read-only. */
function queryText(query: Record<string, string | null | undefined>): string {
  const pairs = Object.entries(query).filter(([, value]) => value != null);
  return pairs
    .map(([name, value], index) => `${index === 0 ? "?" : "&"}${name}=${encodeURIComponent(value ?? "")}`)
    .join("");
}
