import {
  type BadgePage,
  type Invitation,
  type InvitationRequest,
  type RevokedInvitation,
  readBadges,
  readInvitation,
  readRevokedInvitation,
} from "./answers.ts";
import { BadgePages } from "./badge-pages.ts";
import { type CallOptions, type ClientOptions, Transport } from "./transport.ts";
import { type VerifiedWebhook, verifyWebhook, type WebhookRefused, type WebhookToVerify } from "./webhook.ts";

/** An application's server. */
export interface ServerClientOptions extends ClientOptions {
  /** Stays on the server. */
  applicationSecret: string;
}

export interface ListQuery extends CallOptions {
  /** Only the badges of this user of the application. */
  userId?: string;
  /** Badges a page: 100 if not given, 1,000 at most. */
  perPage?: number;
}

export interface NewInvitation extends CallOptions {
  /** Ahead of now, by 365 days at most. A text is ISO 8601 with a zone, and comes back as it was sent. */
  expiresAt: InvitationRequest["expiresAt"] | Date;
  /** Of whoever invites: 1 to 255 printable ASCII characters. */
  udid: string;
}

/** What an application's server calls: list badges, invite, revoke, and check webhooks. */
export class ServerClient {
  readonly #transport: Transport;
  readonly #secret: string;

  constructor({ applicationSecret, ...options }: ServerClientOptions) {
    this.#transport = new Transport(options);
    this.#secret = applicationSecret;
  }

  /**
   * Lists badges: `for await (const page of server.listBadges())`, or `server.listBadges().badges()` for one badge
   * after the other. Nothing is sent before the iteration starts; what fails is thrown there.
   *
   * @throws RangeError for a `userId` that the service's paths cannot name, also when it is there but undefined: it
   *   must not list everybody's badges
   */
  listBadges(query: ListQuery = {}): BadgePages {
    const { perPage, signal } = query;
    const path = "userId" in query ? `/v1/users/${pathSegment(query.userId)}/badges` : "/v1/badges";
    return new BadgePages((cursor) => this.#page(path, { per_page: perPage?.toString(), cursor }, signal));
  }

  /**
   * Reserves a number for a visitor. Sent again only after 429 RATE_LIMITED. After 503 UNAVAILABLE or without a response a
   * number may be reserved already, and a second call would reserve another. After 503 the service ends such an invitation
   * by itself within about an hour; when the response was lost on its way, the number is free again at `expiresAt`.
   *
   * @throws BadgeServiceError, NoAnswerError or the signal's reason
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
   * Ends an invitation that nobody has claimed; its number becomes available again. Repeated, it answers the same.
   *
   * @param id the invitation token
   * @throws BadgeServiceError, NoAnswerError or the signal's reason
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

  /** `verifyWebhook` with this client's secret, unless others are given. */
  verifyWebhook(
    webhook: Omit<WebhookToVerify, "secrets"> & Partial<Pick<WebhookToVerify, "secrets">>,
  ): Promise<VerifiedWebhook | WebhookRefused> {
    return verifyWebhook({ secrets: this.#secret, ...webhook });
  }

  #page(path: string, query: Record<string, string | null | undefined>, signal?: AbortSignal): Promise<BadgePage> {
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
 * One segment of a path. "." and ".." are none, percent-encoded or not: `fetch` resolves them (URL Standard, path
 * state), and the users' list would become the whole application's.
 */
function pathSegment(text: string | undefined): string {
  if (text === undefined || text === "" || text === "." || text === "..") {
    throw new RangeError(`a path cannot name ${text === undefined ? "undefined" : `"${text}"`}`);
  }
  return encodeURIComponent(text);
}

/** By hand, because React Native's URLSearchParams cannot be written to. */
function queryText(query: Record<string, string | null | undefined>): string {
  const pairs = Object.entries(query).filter(([, value]) => value != null);
  return pairs
    .map(([name, value], index) => `${index === 0 ? "?" : "&"}${name}=${encodeURIComponent(value ?? "")}`)
    .join("");
}
