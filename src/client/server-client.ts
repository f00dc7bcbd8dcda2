import type { CallOptions, ClientOptions } from "./options.ts";
import type {
  AccessPage,
  Application,
  DoorPage,
  EventPage,
  EventState,
  HistoryPage,
  InvitationPage,
  InvitationState,
  ReplayedEvent,
  Statistics,
} from "./overview-types.ts";
import {
  AccessPages,
  BadgePages,
  BlockedUserPages,
  ChangePages,
  DoorPages,
  EventPages,
  HistoryPages,
  InvitationPages,
} from "./pages.ts";
import { pathSegment, percentEncode, queryText } from "./paths.ts";
import { badge, object, type Reader } from "./reading.ts";
import { type Call, Transport } from "./transport.ts";
import type {
  BadgePage,
  BadgeState,
  BadgeTimesRequest,
  BlockedUser,
  BlockedUserPage,
  ChangePage,
  CurrentBadge,
  ErasedInvitation,
  ErasedUser,
  Invitation,
  InvitationRequest,
  RefusedInvitation,
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
  /** Lists only the badges of this user. */
  userId?: string;
}

/** Search, filter and order of a list of badges. */
export interface BadgeSearch extends PageOptions {
  /** Absent: active and suspended badges. */
  state?: BadgeState | undefined;
  /** Part of a user ID or name, in any case: at least 2 characters. */
  q?: string | undefined;
  /** Only badges that end before this time. A string is ISO 8601 with a zone. */
  endsBefore?: string | Date | undefined;
  /** Newest first instead of oldest first. */
  order?: "newest" | undefined;
}

export interface HistoryQuery extends PageOptions {
  /** Only what concerns this badge. */
  badgeId?: string | undefined;
  /** Only what concerns this user. */
  userId?: string | undefined;
  /** Only what was done at this time or later. A string is ISO 8601 with a zone. */
  since?: string | Date | undefined;
  /** Only what was done before this time. */
  until?: string | Date | undefined;
  /** Only what an actor of exactly this name did. */
  actor?: string | undefined;
  /** Only this action, such as `badge:suspended`. */
  action?: string | undefined;
}

/** Options of a call that changes something. */
export interface ActingOptions extends CallOptions {
  /** Name of the person for whom your server calls: 1 to 100 characters. The history records it. */
  actor?: string | undefined;
}

export interface ChangeOptions extends ActingOptions {
  /** Why: 1 to 500 characters. The history records it. */
  reason?: string | undefined;
}

export interface BadgeStepOptions extends ChangeOptions {
  /**
   * The `change` of the badge as you read it. If the badge has changed since, the call throws CHANGED_BADGE and does nothing. If the
   * response was lost, the client does not repeat a call that has changed the badge: it would get CHANGED_BADGE for its own change.
   */
  ifChange?: number | undefined;
}

export interface InvitationQuery extends PageOptions {
  /** Lists only invitations in this state. */
  state?: InvitationState;
  /**
   * Lists only invitations whose visit ends after this time. A string is ISO 8601 with a zone. With this or `until`, the list is in
   * the order in which visits begin: at `badgeStartsAt`, or when the invitation was created.
   */
  from?: string | Date | undefined;
  /** Lists only invitations whose visit begins before this time. */
  until?: string | Date | undefined;
  /** Part of a user ID or name, in any case: at least 2 characters. */
  q?: string | undefined;
}

export interface EventQuery extends PageOptions {
  /** Lists only events in this state. */
  state?: EventState;
}

export interface ChangesQuery extends PageOptions {
  /** The `cursor` of the last page that was applied. Null or absent: from the beginning, for an empty copy. */
  cursor?: string | null;
}

/** An invitation to make. */
export interface InvitationInput {
  /** In the future, at most 365 days ahead. A string is ISO 8601 with a zone, and is returned unchanged. */
  expiresAt: InvitationRequest["expiresAt"] | Date;
  /**
   * End of the badge that is claimed, in the future, at most 3,650 days ahead. A string is ISO 8601 with a zone, and is
   * returned unchanged. Absent: the badge has no end. The invitation ends with it, if that is earlier.
   */
  badgeExpiresAt?: string | Date | undefined;
  /** Start of the claimed badge, before its end; absent for a start at once. */
  badgeStartsAt?: string | Date | undefined;
  /** Name of the visitor, for the application's staff: 1 to 100 characters. */
  name?: string | undefined;
  /** The invited user; only a device that names this user can claim the invitation. */
  userId?: string | undefined;
}

export interface InvitingOptions extends ActingOptions {
  /** Identifies the inviter: 1 to 255 printable ASCII characters. */
  udid: string;
  /**
   * 1 to 255 printable ASCII characters that identify this invitation among the application's, such as the ID of the visit.
   * Another call with the same key, `udid`, times, `name` and `userId`, also after a restart, returns the same invitation.
   * Default: random.
   */
  idempotencyKey?: string;
}

export interface NewInvitation extends InvitationInput, InvitingOptions {}

/**
 * For an application's server: lists and ends badges, keeps a mirror of them, creates and revokes invitations, and verifies
 * webhooks. Every call but `verifyWebhook` throws BadgeServiceError, NoResponseError or the reason of its signal, and
 * RangeError for an ID that cannot be part of a path, or a text that is not Unicode.
 */
export class ServerClient {
  readonly #transport: Transport;
  readonly #secret: string;

  constructor({ applicationSecret, ...options }: ServerClientOptions) {
    this.#transport = new Transport(options);
    this.#secret = applicationSecret;
  }

  /**
   * Lists active and suspended badges page by page: `for await (const page of server.listBadges())`, or one by one with
   * `server.listBadges().badges()`. The iteration sends the requests and throws their errors.
   *
   * @throws RangeError for a `userId` that cannot be part of a path, or that is present but undefined, which would list
   * the badges of all users
   */
  listBadges(query: ListQuery = {}): BadgePages {
    const { perPage, signal } = query;
    const path = "userId" in query ? `/v1/users/${pathSegment(query.userId)}/badges` : "/v1/badges";
    return new BadgePages((cursor) =>
      this.#page(`${path}${queryText({ per_page: perPage, cursor })}`, badgePage, signal),
    );
  }

  /**
   * Lists badges that are searched, filtered or ordered, like `listBadges`. A page may be short or empty although more
   * badges follow, because the service reads a limited number of badges for one page.
   */
  searchBadges({ state, q, endsBefore, order, perPage, signal }: BadgeSearch): BadgePages {
    const query = { state, q, endsBefore: endsBefore === undefined ? undefined : dateTime(endsBefore), order };
    return new BadgePages((cursor) =>
      this.#page(`/v1/badges${queryText({ ...query, per_page: perPage, cursor })}`, badgePage, signal),
    );
  }

  /** A badge in any state. @param id the badge number */
  async getBadge(id: string, { signal }: CallOptions = {}): Promise<CurrentBadge> {
    return this.#call({ method: "GET", path: `/v1/badges/${pathSegment(id)}`, read: currentBadge, signal });
  }

  /** The device is refused with SUSPENDED_BADGE from now on, until `resumeBadge`. @param id the badge number */
  async suspendBadge(id: string, options: BadgeStepOptions = {}): Promise<CurrentBadge> {
    return this.#step(`/v1/badges/${pathSegment(id)}/suspend`, {}, options);
  }

  /** Ends a suspension. @param id the badge number */
  async resumeBadge(id: string, options: BadgeStepOptions = {}): Promise<CurrentBadge> {
    return this.#step(`/v1/badges/${pathSegment(id)}/resume`, {}, options);
  }

  /**
   * Ends a badge for good. Its number is never issued again; only an invitation gives the user device another badge.
   *
   * @param id the badge number
   */
  async revokeBadge(id: string, options: BadgeStepOptions = {}): Promise<CurrentBadge> {
    return this.#step(`/v1/badges/${pathSegment(id)}/revoke`, {}, options);
  }

  /**
   * Lets a badge move to another key, or get its first one: for 24 hours, the first login of its user device with a proof by
   * another key binds it to that key. Until then everything works as before. For a phone whose app has lost its key; suspend
   * or revoke the badge of a phone that was lost.
   *
   * If the response was lost, the client repeats this call only with `ifChange`. Without it, the phone may have bound its new key
   * meanwhile, and the repeated call would let another key take its place.
   *
   * @param id the badge number
   */
  async rebindBadge(id: string, options: BadgeStepOptions = {}): Promise<CurrentBadge> {
    const isRepeatable = options.ifChange !== undefined;
    return this.#step(`/v1/badges/${pathSegment(id)}/rebind`, {}, options, isRepeatable);
  }

  /**
   * Sets the end of a badge. A later end restores an expired badge.
   *
   * @param id the badge number
   * @param expiresAt a past time ends the badge now; null: it has no end. A string is ISO 8601 with a zone
   */
  async setBadgeEnd(
    id: string,
    expiresAt: Date | string | null,
    options: BadgeStepOptions = {},
  ): Promise<CurrentBadge> {
    return this.setBadgeTimes(id, { expiresAt }, options);
  }

  /**
   * Sets when a badge starts or ends, or both.
   *
   * @param id the badge number
   * @param times null: no start or end; absent: unchanged. A string is ISO 8601 with a zone
   */
  async setBadgeTimes(
    id: string,
    { startsAt, expiresAt }: { startsAt?: Date | string | null; expiresAt?: Date | string | null },
    options: BadgeStepOptions = {},
  ): Promise<CurrentBadge> {
    const body: BadgeTimesRequest = {
      ...(startsAt !== undefined && { startsAt: startsAt === null ? null : dateTime(startsAt) }),
      ...(expiresAt !== undefined && { expiresAt: expiresAt === null ? null : dateTime(expiresAt) }),
    };
    return this.#step(`/v1/badges/${pathSegment(id)}`, body, options);
  }

  /** Whether the user is blocked, also for a user without any badge. */
  async getUser(userId: string, { signal }: CallOptions = {}): Promise<User> {
    return this.#get(`/v1/users/${pathSegment(userId)}`, user, signal);
  }

  /**
   * Refuses the user new badges, and revokes those that the user has. `revoked` names the badges of this call: a retry
   * after a lost response does not name those of the first try.
   */
  async blockUser(userId: string, options: ChangeOptions = {}): Promise<BlockedUser> {
    return this.#change(`/v1/users/${pathSegment(userId)}/block`, bodyAs(blockedUser), options);
  }

  /** Lets the user get new badges again. Revoked ones stay revoked. */
  async unblockUser(userId: string, options: ChangeOptions = {}): Promise<BlockedUser> {
    return this.#change(`/v1/users/${pathSegment(userId)}/unblock`, bodyAs(blockedUser), options);
  }

  /** Lists blocked users, in the order in which they were blocked, like `listBadges`. */
  listBlockedUsers({ perPage, signal }: PageOptions = {}): BlockedUserPages {
    return new BlockedUserPages((cursor) =>
      this.#page(`/v1/users${queryText({ state: "blocked", per_page: perPage, cursor })}`, blockedUserPage, signal),
    );
  }

  /**
   * Erases a user: revokes the user's badges, replaces this user ID by a random one everywhere, and deletes names and
   * metadata. It cannot be undone.
   */
  async eraseUser(userId: string, options: ActingOptions = {}): Promise<ErasedUser> {
    return this.#change(`/v1/users/${pathSegment(userId)}/erase`, bodyAs(erasedUser), options);
  }

  /**
   * What changed since `cursor`, for a mirror of the application's badges: every badge that was ever issued appears once,
   * with its present state, in the order of its last change. The iteration ends when the mirror is complete. Call again
   * with the last cursor, at any later time and in any process, for what changed since and nothing else.
   *
   * Apply each page in one transaction that writes its changes, by `id`, and its cursor. Then each change is applied
   * exactly once, whenever your program dies: a page is either stored with its cursor, or fetched again. Where several
   * programs write the same mirror, keep the version of a badge whose `change` is higher.
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
   * If this throws an error that `isExpiredCursor`, the service has lost changes or numbers. Start again without a cursor,
   * and delete the badges that this walk does not return.
   */
  changes({ cursor = null, perPage, signal }: ChangesQuery = {}): ChangePages {
    const fetchPage = (from: string | null) =>
      this.#call({
        method: "GET",
        path: `/v1/changes${queryText({ per_page: perPage, cursor: from })}`,
        read: ({ body, headers }) => {
          const page = changePage(body);
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
    return this.#invite("/v1/invitation", invitationRequest(invitation), bodyAs(newInvitation), invitation);
  }

  /**
   * Like `createInvitation`, up to 100 at once. Each is created or refused by itself; retries get the same invitations.
   *
   * @returns the result of each, in the same order
   */
  async createInvitations(
    invitations: readonly InvitationInput[],
    options: InvitingOptions,
  ): Promise<(Invitation | RefusedInvitation)[]> {
    const body = { invitations: invitations.map(invitationRequest) };
    return (await this.#invite("/v1/invitations", body, bodyAs(newInvitations), options)).invitations;
  }

  /**
   * Revokes an invitation that has not been claimed, and releases its number.
   *
   * @param id the invitation token; a repeated call then returns the same result. Or the badge number, while it is reserved; if
   *   the response was lost, the client does not repeat the call, because another invitation may have the number by then
   */
  async revokeInvitation(id: string, options: ChangeOptions = {}): Promise<RevokedInvitation> {
    return this.#change(`/v1/invitation/${pathSegment(id)}/revoke`, bodyAs(revokedInvitation), options, byToken(id));
  }

  /**
   * Deletes the name and the user ID of an invitation, and revokes it if it is pending.
   *
   * @param id as in `revokeInvitation`
   */
  async eraseInvitation(id: string, options: ChangeOptions = {}): Promise<ErasedInvitation> {
    return this.#change(`/v1/invitation/${pathSegment(id)}/erase`, bodyAs(erasedInvitation), options, byToken(id));
  }

  /** Lists invitations, newest first or by visit (`from`, `until`), like `listBadges`. Tokens are not listed. */
  listInvitations({ state, from, until, q, perPage, signal }: InvitationQuery = {}): InvitationPages {
    const span = { from: from && dateTime(from), until: until && dateTime(until) };
    return new InvitationPages((cursor) =>
      this.#page(
        `/v1/invitations${queryText({ state, ...span, q, per_page: perPage, cursor })}`,
        invitationPage,
        signal,
      ),
    );
  }

  /** Lists the people with a console secret, by name, like `listBadges`. */
  listAccess({ perPage, signal }: PageOptions = {}): AccessPages {
    return new AccessPages((cursor) =>
      this.#page(`/v1/access${queryText({ per_page: perPage, cursor })}`, accessPage, signal),
    );
  }

  /** Lists the doors that have a secret and whether each knows the last change of status, by name, like `listBadges`. */
  listDoors({ perPage, signal }: PageOptions = {}): DoorPages {
    return new DoorPages((cursor) =>
      this.#page(`/v1/doors${queryText({ per_page: perPage, cursor })}`, doorPage, signal),
    );
  }

  /** Lists events and how their deliveries went, newest first, like `listBadges`. */
  listEvents({ state, perPage, signal }: EventQuery = {}): EventPages {
    return new EventPages((cursor) =>
      this.#page(`/v1/events${queryText({ state, per_page: perPage, cursor })}`, eventPage, signal),
    );
  }

  /**
   * Lists the history of the application's badges, users and settings, newest first, like `listBadges` (contract
   * section 23).
   */
  listHistory({ badgeId, userId, since, until, actor, action, perPage, signal }: HistoryQuery = {}): HistoryPages {
    const filters = {
      ...{ badge: badgeId, user: userId, actor, action },
      ...{ since: since && dateTime(since), until: until && dateTime(until) },
    };
    return new HistoryPages((cursor) =>
      this.#page(`/v1/history${queryText({ ...filters, per_page: perPage, cursor })}`, historyPage, signal),
    );
  }

  /** Sends an event's webhook again at once, or when the endpoint is released. @param id the event's ID */
  async replayEvent(id: string, { actor, signal }: ActingOptions = {}): Promise<ReplayedEvent> {
    return this.#call({
      method: "POST",
      path: `/v1/events/${pathSegment(id)}/replay`,
      headers: actorHeader(actor),
      read: bodyAs(replayedEvent),
      signal,
    });
  }

  /** The application's own settings. */
  async getApplication({ signal }: CallOptions = {}): Promise<Application> {
    return this.#get("/v1/application", application, signal);
  }

  /** The application's statistics, counted now. */
  async getStatistics({ signal }: CallOptions = {}): Promise<Statistics> {
    return this.#get("/v1/stats", statistics, signal);
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

  #invite<T>(path: string, body: object, read: Call<T>["read"], options: InvitingOptions): Promise<T> {
    const { udid, idempotencyKey = crypto.randomUUID(), actor, signal } = options;
    if (idempotencyKey.trim() === "") throw new RangeError("idempotencyKey is blank");
    const headers = { udid, "idempotency-key": idempotencyKey, ...actorHeader(actor) };
    return this.#call({ method: "POST", path, headers, body, read, signal });
  }

  #step(
    path: string,
    times: BadgeTimesRequest,
    options: BadgeStepOptions,
    isRepeatable = options.ifChange === undefined,
  ): Promise<CurrentBadge> {
    const { ifChange } = options;
    const headers = ifChange === undefined ? {} : { "if-match": `"${ifChange}"` };
    return this.#change(path, currentBadge, options, { times, headers, isRepeatable });
  }

  #change<T>(
    path: string,
    read: Call<T>["read"],
    { reason, actor, signal }: ChangeOptions,
    {
      times = {},
      headers = {},
      isRepeatable = true,
    }: { times?: BadgeTimesRequest; headers?: Record<string, string>; isRepeatable?: boolean } = {},
  ): Promise<T> {
    const body = reason === undefined ? times : { ...times, reason };
    return this.#call({
      method: "PATCH",
      path,
      headers: { ...headers, ...actorHeader(actor) },
      ...(Object.keys(body).length > 0 && { body }),
      isRepeatable,
      read,
      signal,
    });
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
        const page = reader(body);
        return page && { ...page, nextCursor: headers.get("pagination-cursor") };
      },
      signal,
    });
  }

  #call<T>(call: Call<T>): Promise<T> {
    return this.#transport.call({ ...call, headers: { applicationsecret: this.#secret, ...call.headers } });
  }
}

const currentBadge: Call<CurrentBadge>["read"] = ({ body, headers }) => {
  const read = badge(body);
  // Proxies that compress a response weaken its tag.
  const change = /^(?:W\/)?"([0-9]+)"$/.exec(headers.get("etag") ?? "")?.[1];
  return read && { ...read, ...(change !== undefined && { change: Number(change) }) };
};
const badgePage = object<Omit<BadgePage, "nextCursor">>({ badges: "array" });
const changePage = object<Omit<ChangePage, "cursor">>({ changes: "array", more: "boolean" });
const user = object<User>({ userId: "string", blocked: "boolean" });
const blockedUser = object<BlockedUser>({ userId: "string", blocked: "boolean", revoked: "array" });
const newInvitation = object<Invitation>({ id: "string", badgeId: "string", expiresAt: "string" });
const newInvitations = object<{ invitations: (Invitation | RefusedInvitation)[] }>({ invitations: "array" });
const revokedInvitation = object<RevokedInvitation>({ id: "string", badgeId: "string", revokedAt: "string" });
const application = object<Application>({ applicationId: "string" });
const invitationPage = object<Omit<InvitationPage, "nextCursor">>({ invitations: "array" });
const blockedUserPage = object<Omit<BlockedUserPage, "nextCursor">>({ users: "array" });
const erasedInvitation = object<ErasedInvitation>({ badgeId: "string" });
const erasedUser = object<ErasedUser>({ userId: "string", erased: "number" });
const accessPage = object<Omit<AccessPage, "nextCursor">>({ people: "array" });
const doorPage = object<Omit<DoorPage, "nextCursor">>({ doors: "array" });
const historyPage = object<Omit<HistoryPage, "nextCursor">>({ history: "array" });
const eventPage = object<Omit<EventPage, "nextCursor">>({ events: "array" });
const replayedEvent = object<ReplayedEvent>({ id: "string", state: "string" });
const statistics = object<Statistics>({ applicationId: "string", asOf: "string" });

/** By the time of a retry, another invitation may have the number, but never the token. */
const byToken = (id: string) => ({ isRepeatable: !/^[1-9][0-9]*$/.test(id) });

const bodyAs =
  <T>(reader: Reader<T>): Call<T>["read"] =>
  ({ body }) =>
    reader(body);

const dateTime = (time: Date | string): string => (typeof time === "string" ? time : time.toISOString());

/** Without an actor there is no header. A name is percent-encoded, because headers are ASCII. */
const actorHeader = (actor: string | undefined): Record<string, string> =>
  actor === undefined ? {} : { actor: percentEncode(actor) };

function invitationRequest(invitation: InvitationInput): InvitationRequest {
  const { expiresAt, badgeExpiresAt, badgeStartsAt, name, userId } = invitation;
  return {
    expiresAt: dateTime(expiresAt),
    badgeExpiresAt: badgeExpiresAt === undefined ? undefined : dateTime(badgeExpiresAt),
    badgeStartsAt: badgeStartsAt === undefined ? undefined : dateTime(badgeStartsAt),
    name,
    userId,
  };
}
