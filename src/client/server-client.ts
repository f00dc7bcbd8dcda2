import type { CallOptions, ClientOptions } from "./options.ts";
import type { Application, EventState, InvitationState, ReplayedEvent, Statistics } from "./overview-types.ts";
import { BadgePages, BlockedUserPages, ChangePages, EventPages, HistoryPages, InvitationPages } from "./pages.ts";
import { pathSegment, queryText } from "./paths.ts";
import { type Reader, read } from "./reading.ts";
import * as responses from "./responses.ts";
import { type Call, Transport } from "./transport.ts";
import type {
  Badge,
  BadgeEndRequest,
  BadgeState,
  BlockedUser,
  Invitation,
  InvitationRequest,
  RevokedInvitation,
  User,
} from "./types.ts";
import { type VerifiedWebhook, verifyWebhook, type WebhookRefused, type WebhookToVerify } from "./webhook.ts";

/** An application's server. */
export interface ServerClientOptions extends ClientOptions {
  /** Must not leave the server. */
  applicationSecret: string;
}

export interface PageOptions extends CallOptions {
  /** Items per page, at most 1,000. Default 100. */
  perPage?: number;
}

export interface ListQuery extends PageOptions {
  /** Lists only the badges of this user, active and suspended ones: it goes with no other filter. */
  userId?: string;
  /** Lists only badges in this state. Default: active and suspended ones. */
  state?: BadgeState;
  /** Lists only badges whose user ID or name has this text in it, in any case: at least 2 characters. */
  text?: string;
  /** Lists only badges that end before this time. A string is ISO 8601 with a zone. */
  endsBefore?: Date | string;
  /** Default: oldest first. */
  order?: "newest";
}

export interface HistoryQuery extends PageOptions {
  /** Lists only what concerns this badge number. */
  badge?: string;
  /** Lists only what concerns this user. */
  userId?: string;
}

export interface InvitationQuery extends PageOptions {
  /** Lists only invitations in this state. */
  state?: InvitationState;
}

export interface EventQuery extends PageOptions {
  /** Lists only events in this state. */
  state?: EventState;
}

export interface ChangesQuery extends PageOptions {
  /** The `cursor` of the last page that was applied. Null or absent: from the beginning, for an empty copy. */
  cursor?: string | null;
}

export interface NewInvitation extends CallOptions {
  /** In the future, at most 365 days ahead. A string is ISO 8601 with a zone, and is returned unchanged. */
  expiresAt: InvitationRequest["expiresAt"] | Date;
  /**
   * End of the badge that is claimed, in the future, at most 3,650 days ahead. A string is ISO 8601 with a zone, and is
   * returned unchanged. Absent: the badge has no end. The invitation ends with it, if that is earlier.
   */
  badgeExpiresAt?: string | Date | undefined;
  /** Identifies who invites: 1 to 255 printable ASCII characters. */
  udid: string;
  /**
   * 1 to 255 printable ASCII characters that identify this invitation among the application's, such as the ID of the visit.
   * Another call with the same key, `udid` and times, also after a restart, returns the same invitation. Default: random.
   */
  idempotencyKey?: string;
}

/**
 * For an application's server: lists and ends badges, keeps a copy of them, creates and revokes invitations, and verifies
 * webhooks. Every call but `verifyWebhook` throws BadgeServiceError, NoResponseError or the reason of its signal, and
 * RangeError for an ID that cannot be part of a path.
 */
export class ServerClient {
  readonly #transport: Transport;
  readonly #secret: string;

  constructor({ applicationSecret, ...options }: ServerClientOptions) {
    this.#transport = new Transport(options);
    this.#secret = applicationSecret;
  }

  /**
   * Lists badges page by page, by default active and suspended ones, oldest first: `for await (const page of server.listBadges())`, or one by one with
   * `server.listBadges().badges()`. The iteration sends the requests and throws their errors.
   *
   * @throws RangeError for a `userId` that cannot be part of a path, or that is present but undefined, which would list
   *   everybody's badges
   */
  listBadges(query: ListQuery = {}): BadgePages {
    const { perPage, signal, state, text: q, endsBefore, order } = query;
    const path = "userId" in query ? `/v1/users/${pathSegment(query.userId)}/badges` : "/v1/badges";
    const filters = { state, q, endsBefore: endsBefore === undefined ? undefined : dateTime(endsBefore), order };
    return new BadgePages((cursor) =>
      this.#page(`${path}${queryText({ ...filters, per_page: perPage, cursor })}`, responses.listedBadges, signal),
    );
  }

  /** A badge in any state. @param id the badge number */
  async getBadge(id: string, { signal }: CallOptions = {}): Promise<Badge> {
    return this.#get(`/v1/badges/${pathSegment(id)}`, responses.badge, signal);
  }

  /** The device is refused with SUSPENDED_BADGE from now on, until `resumeBadge`. @param id the badge number */
  async suspendBadge(id: string, { signal }: CallOptions = {}): Promise<Badge> {
    return this.#change(`/v1/badges/${pathSegment(id)}/suspend`, undefined, responses.badge, signal);
  }

  /** Ends a suspension. @param id the badge number */
  async resumeBadge(id: string, { signal }: CallOptions = {}): Promise<Badge> {
    return this.#change(`/v1/badges/${pathSegment(id)}/resume`, undefined, responses.badge, signal);
  }

  /**
   * Ends a badge for good. Its number is never issued again; only an invitation gives the user device another badge.
   *
   * @param id the badge number
   */
  async revokeBadge(id: string, { signal }: CallOptions = {}): Promise<Badge> {
    return this.#change(`/v1/badges/${pathSegment(id)}/revoke`, undefined, responses.badge, signal);
  }

  /**
   * Lets a badge move to another key, or get its first one: for 24 hours, the first login of its user device with a proof by
   * another key binds it to that key. Until then everything works as before. For a phone whose app has lost its key; suspend
   * or revoke the badge of a phone that was lost.
   *
   * @param id the badge number
   */
  async rebindBadge(id: string, { signal }: CallOptions = {}): Promise<Badge> {
    return this.#change(`/v1/badges/${pathSegment(id)}/rebind`, undefined, responses.badge, signal);
  }

  /**
   * Sets the end of a badge. A later end restores an expired badge.
   *
   * @param id the badge number
   * @param expiresAt a past time ends the badge now; null: it has no end. A string is ISO 8601 with a zone
   */
  async setBadgeEnd(id: string, expiresAt: Date | string | null, { signal }: CallOptions = {}): Promise<Badge> {
    const body: BadgeEndRequest = { expiresAt: expiresAt === null ? null : dateTime(expiresAt) };
    return this.#change(`/v1/badges/${pathSegment(id)}`, body, responses.badge, signal);
  }

  /** Whether the user is blocked, also for a user without any badge. */
  async getUser(userId: string, { signal }: CallOptions = {}): Promise<User> {
    return this.#get(`/v1/users/${pathSegment(userId)}`, responses.user, signal);
  }

  /**
   * Refuses the user new badges, and revokes those that the user has. `revoked` names the badges of this call: a retry
   * after a lost response does not name those of the first try.
   */
  async blockUser(userId: string, { signal }: CallOptions = {}): Promise<BlockedUser> {
    return this.#change(`/v1/users/${pathSegment(userId)}/block`, undefined, responses.blockedUser, signal);
  }

  /** Lets the user get new badges again. Revoked ones stay revoked. */
  async unblockUser(userId: string, { signal }: CallOptions = {}): Promise<BlockedUser> {
    return this.#change(`/v1/users/${pathSegment(userId)}/unblock`, undefined, responses.blockedUser, signal);
  }

  /**
   * What changed since `cursor`, for a copy of the application's badges: every badge that was ever issued appears once,
   * with its present state, in the order of its last change. The iteration ends when the copy is complete. Call again
   * with the last cursor, at any later time and in any process, for what changed since and nothing else.
   *
   * Apply each page in one transaction that writes its changes, by `id`, and its cursor. Then each change is applied
   * exactly once, whenever your program dies: a page is either stored with its cursor, or fetched again. Where several
   * programs write the same copy, keep the version of a badge whose `change` is higher.
   *
   * ```ts
   * for await (const { changes, cursor } of server.changes({ cursor: await loadCursor() })) {
   *   await transaction(async () => {
   *     await upsertBadges(changes);
   *     await saveCursor(cursor);
   *   });
   * }
   * ```
   *
   * If this throws an error that `isExpiredCursor`, the service's database was restored to an older state: throw the copy
   * away and start again without a cursor.
   */
  changes({ cursor = null, perPage, signal }: ChangesQuery = {}): ChangePages {
    const fetchPage = (from: string | null) =>
      this.#call({
        method: "GET",
        path: `/v1/changes${queryText({ per_page: perPage, cursor: from })}`,
        read: ({ body, headers }) => {
          const page = read(responses.changes, body);
          const next = headers.get("pagination-cursor");
          return page && next !== null ? { ...page, cursor: next } : null;
        },
        signal,
      });
    return new ChangePages(fetchPage, cursor);
  }

  /**
   * Reserves a number for a visitor. Retries get the same invitation, by their Idempotency-Key. If the call still fails, a
   * number may be reserved until `expiresAt`: calling again with an `idempotencyKey` of your own gets that invitation, and
   * without one reserves another number.
   *
   * @throws RangeError for a blank `idempotencyKey`, which the service would ignore
   */
  async createInvitation(invitation: NewInvitation): Promise<Invitation> {
    const { expiresAt, badgeExpiresAt, udid, idempotencyKey = crypto.randomUUID(), signal } = invitation;
    if (idempotencyKey.trim() === "") throw new RangeError("idempotencyKey is blank");
    const body: InvitationRequest = {
      expiresAt: dateTime(expiresAt),
      badgeExpiresAt: badgeExpiresAt === undefined ? undefined : dateTime(badgeExpiresAt),
    };
    return this.#call({
      method: "POST",
      path: "/v1/invitation",
      headers: { udid, "idempotency-key": idempotencyKey },
      body,
      read: bodyAs(responses.invitation),
      signal,
    });
  }

  /**
   * Revokes an invitation that has not been claimed, and releases its number.
   *
   * @param id the invitation token: repeating it returns the same result. Or the badge number, while it is reserved: after
   *   a lost response a retry throws UNKNOWN_INVITATION
   */
  async revokeInvitation(id: string, { signal }: CallOptions = {}): Promise<RevokedInvitation> {
    return this.#change(`/v1/invitation/${pathSegment(id)}/revoke`, undefined, responses.revokedInvitation, signal);
  }

  /** Lists invitations, newest first, like `listBadges`. Tokens are not listed. */
  listInvitations({ state, perPage, signal }: InvitationQuery = {}): InvitationPages {
    return new InvitationPages((cursor) =>
      this.#page(
        `/v1/invitations${queryText({ state, per_page: perPage, cursor })}`,
        responses.listedInvitations,
        signal,
      ),
    );
  }

  /** Lists who did what, newest first, like `listBadges`. */
  listHistory({ badge, userId: user, perPage, signal }: HistoryQuery = {}): HistoryPages {
    return new HistoryPages((cursor) =>
      this.#page(
        `/v1/history${queryText({ badge, user, per_page: perPage, cursor })}`,
        responses.listedHistory,
        signal,
      ),
    );
  }

  /** Lists blocked users, like `listBadges`. */
  listBlockedUsers({ perPage, signal }: PageOptions = {}): BlockedUserPages {
    const query = (cursor: string | null) => queryText({ state: "blocked", per_page: perPage, cursor });
    return new BlockedUserPages((cursor) => this.#page(`/v1/users${query(cursor)}`, responses.listedUsers, signal));
  }

  /** Lists events and how their deliveries went, newest first, like `listBadges`. */
  listEvents({ state, perPage, signal }: EventQuery = {}): EventPages {
    return new EventPages((cursor) =>
      this.#page(`/v1/events${queryText({ state, per_page: perPage, cursor })}`, responses.listedEvents, signal),
    );
  }

  /** Sends an event's webhook again at once, or when the endpoint is released. @param id the event's ID */
  async replayEvent(id: string, { signal }: CallOptions = {}): Promise<ReplayedEvent> {
    return this.#call({
      method: "POST",
      path: `/v1/events/${pathSegment(id)}/replay`,
      read: bodyAs(responses.replayedEvent),
      signal,
    });
  }

  /** The application's own settings. */
  async getApplication({ signal }: CallOptions = {}): Promise<Application> {
    return this.#get("/v1/application", responses.application, signal);
  }

  /** At most 5 minutes old; with more than 20,000 badges at most an hour. */
  async getStatistics({ signal }: CallOptions = {}): Promise<Statistics> {
    return this.#get("/v1/stats", responses.statistics, signal);
  }

  /** `verifyWebhook` with this client's secret by default. */
  verifyWebhook(
    webhook: Omit<WebhookToVerify, "secrets"> & Partial<Pick<WebhookToVerify, "secrets">>,
  ): Promise<VerifiedWebhook | WebhookRefused> {
    return verifyWebhook({ secrets: this.#secret, ...webhook });
  }

  #get<T>(path: string, reader: Reader<T>, signal: CallOptions["signal"]): Promise<T> {
    return this.#call({ method: "GET", path, read: bodyAs(reader), signal });
  }

  #change<T>(path: string, body: object | undefined, reader: Reader<T>, signal: CallOptions["signal"]): Promise<T> {
    return this.#call({ method: "PATCH", path, body, read: bodyAs(reader), signal });
  }

  #page<T extends object>(
    path: string,
    reader: Reader<T>,
    signal: CallOptions["signal"],
  ): Promise<T & { nextCursor: string | null }> {
    return this.#call({
      method: "GET",
      path,
      read: ({ body, headers }) => {
        const page = read(reader, body);
        return page && { ...page, nextCursor: headers.get("pagination-cursor") };
      },
      signal,
    });
  }

  #call<T>(call: Call<T>): Promise<T> {
    return this.#transport.call({ ...call, headers: { applicationsecret: this.#secret, ...call.headers } });
  }
}

const bodyAs =
  <T>(reader: Reader<T>): Call<T>["read"] =>
  ({ body }) =>
    read(reader, body);

const dateTime = (time: Date | string): string => (typeof time === "string" ? time : time.toISOString());
