import { type SQL, sql } from "drizzle-orm";
import { index, integer, primaryKey, type SQLiteColumn, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { ACTOR_KINDS } from "./actor.ts";
import { INVITATION_STATES, type StoredState } from "./badge-lifecycle/states.ts";
import type { EventName } from "./events.ts";
import { statisticsColumn } from "./head-statistics.ts";
import { HISTORY_ACTIONS } from "./history.ts";
import type { ApplicationId, DeviceId, InvitationDigest, UserDigest } from "./identifiers.ts";
import { DEFAULT_NEW_BADGES_PER_HOUR } from "./limits/request-limits.ts";
import { DEFAULT_STATUS_LIFETIME_SECONDS } from "./limits/status-list-limits.ts";
import { DEFAULT_USER_CLAIM } from "./limits/user-token-limits.ts";
import { ROLES } from "./roles.ts";
import { DAY_MILLISECONDS } from "./time.ts";

/**
 * The D1 tables. Times are milliseconds since 1970-01-01 UTC. Every index names the query it serves, because it costs a
 * billed row per write. Digests are base64url, sealed values base64. A leak of these tables cannot sign or authenticate
 * (contract section 9).
 */

/** The column with the application that a row belongs to. */
const ofApplication = () => text("application_id").$type<ApplicationId>().notNull();

/** Public halves of the sealing keys; the private halves are Worker secrets named `SEALING_KEY_<version>_<fingerprint>`. */
export const sealingKey = sqliteTable("sealing_key", {
  version: integer("version").primaryKey(),
  /** SPKI DER of an RSA 3072 key, base64. */
  publicKey: text("public_key").notNull(),
  createdAt: integer("created_at").notNull(),
});

export const application = sqliteTable(
  "application",
  {
    id: text("id").$type<ApplicationId>().primaryKey(),
    name: text("name").notNull(),
    firstNumber: integer("first_number").notNull(),
    lastNumber: integer("last_number").notNull(),
    requireSecret: integer("require_secret", { mode: "boolean" }).notNull().default(false),
    reuseAfterSeconds: integer("reuse_after_seconds").notNull().default(0),
    signatureLifetimeSeconds: integer("signature_lifetime_seconds"),
    /** The root key, sealed: an HMAC key, from which device IDs (the `device` of other tables) and more are derived. */
    sealedRootKey: text("sealed_root_key").notNull(),
    sealingVersion: integer("sealing_version").notNull(),
    webhookUrl: text("webhook_url"),
    /** URL with `{token}` in the console's QR codes of invitations; null for the default (invitation-link.ts). */
    invitationLink: text("invitation_link"),
    /** Set while deliveries are held, because the endpoint responded 410. */
    webhookHeldAt: integer("webhook_held_at"),
    /** Names of the events that the application subscribes to, separated by commas. */
    events: text("events").notNull().default("badge:created"),
    /** Whether badge signatures name a status list, and the lists are published. */
    statusList: integer("status_list", { mode: "boolean" }).notNull().default(false),
    /** How long a door may use a status list without a newer one. */
    statusLifetimeSeconds: integer("status_lifetime_seconds").notNull().default(DEFAULT_STATUS_LIFETIME_SECONDS),
    /** Whether device calls need a proof, and badges a key. */
    requireProof: integer("require_proof", { mode: "boolean" }).notNull().default(false),
    /** Until this time, the first proof on `POST /v1/badge` binds an unbound badge; null for never. */
    bindUntil: integer("bind_until"),
    /**
     * Maximum of fresh numbers in a clock hour for badges and invitations without the secret (contract section 7); null
     * without a limit.
     */
    newBadgesPerHour: integer("new_badges_per_hour").default(DEFAULT_NEW_BADGES_PER_HOUR),
    /** The OpenID provider whose tokens verify users; null if no token is required. */
    userIssuer: text("user_issuer"),
    /** The required member of a user token's `aud`; not null if there is an issuer. */
    userAudience: text("user_audience"),
    /** The claim that contains the user ID. */
    userClaim: text("user_claim").notNull().default(DEFAULT_USER_CLAIM),
    /** Whether tokens are only checked and counted, but not required. */
    userObserve: integer("user_observe", { mode: "boolean" }).notNull().default(false),
    createdAt: integer("created_at").notNull(),
    disabledAt: integer("disabled_at"),
  },
  (table) => [
    // Do two ranges overlap? This index finds the range below.
    uniqueIndex("application_first_number").on(table.firstNumber),
    // Re-sealing: which rows still need an older key?
    index("application_sealing_version").on(table.sealingVersion),
  ],
);

/**
 * The register of number ranges, of all homes. Every home has the table; only home 1's is used. Each
 * application's numbers are registered here before it gets them.
 */
export const numberRange = sqliteTable("number_range", {
  applicationId: text("application_id").$type<ApplicationId>().primaryKey(),
  firstNumber: integer("first_number").notNull(),
  lastNumber: integer("last_number").notNull(),
  registeredAt: integer("registered_at").notNull(),
});

/**
 * At most two live secrets per application's server: the `current` one, and beside it an `added` one (before promotion) or the
 * `previous` one (after it).
 */
export const applicationSecret = sqliteTable(
  "application_secret",
  {
    id: text("id").primaryKey(),
    applicationId: ofApplication().references(() => application.id),
    role: text("role", { enum: ["current", "added", "previous"] }).notNull(),
    /** SHA-256 of the secret. */
    digest: text("digest").notNull(),
    /** The secret itself, sealed: only webhook signing opens it. */
    sealed: text("sealed").notNull(),
    sealingVersion: integer("sealing_version").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [
    // The secrets of one application; unique per role.
    uniqueIndex("application_secret_role").on(table.applicationId, table.role),
    index("application_secret_sealing_version").on(table.sealingVersion),
  ],
);

/**
 * Secrets for people, for use at `/console`. They authenticate server calls and never key a
 * webhook, so only their digests are stored, and a sealing key can be removed without them.
 */
export const consoleSecret = sqliteTable(
  "console_secret",
  {
    applicationId: ofApplication().references(() => application.id),
    /** Whose secret it is; unique within the application. */
    name: text("name").notNull(),
    id: text("id").notNull(),
    /** What the person may do. */
    role: text("role", { enum: ROLES }).notNull().default("operator"),
    /** SHA-256 of the secret. */
    digest: text("digest").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.applicationId, table.name] })],
);

/** Secrets of doors, which authenticate only the call that waits for changes of status. */
export const doorSecret = sqliteTable(
  "door_secret",
  {
    applicationId: ofApplication().references(() => application.id),
    /** Which door has it; unique within the application. */
    name: text("name").notNull(),
    id: text("id").notNull(),
    /** SHA-256 of the secret. */
    digest: text("digest").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.applicationId, table.name] }),
    // Whose secret is this? There are too many for all to be read with the application.
    uniqueIndex("door_secret_digest").on(table.applicationId, table.digest),
  ],
);

/**
 * An application's signing keys. New badges get the newest key, the one with the highest `id`, whose `signsFrom` has
 * passed (currentSigningKey in credentials.ts); a badge keeps the key it was issued with.
 */
export const signingKey = sqliteTable(
  "signing_key",
  {
    /** Never reused, even after a restore: from the time it was made, and random bits (newSigningKeyId). */
    id: integer("id").primaryKey(),
    applicationId: ofApplication().references(() => application.id),
    /** Key ID in JWTs and in the JWK Set: the RFC 7638 thumbprint. */
    kid: text("kid").notNull(),
    /** SPKI DER of the ECDSA P-256 key, base64. */
    publicKey: text("public_key").notNull(),
    /** PKCS #8 DER of the private key, sealed. */
    sealed: text("sealed").notNull(),
    sealingVersion: integer("sealing_version").notNull(),
    createdAt: integer("created_at").notNull(),
    /**
     * Time from which new badges get this key. It is published earlier, so that every cached key set has it by then.
     */
    signsFrom: integer("signs_from").notNull().default(0),
  },
  (table) => [
    index("signing_key_application").on(table.applicationId),
    index("signing_key_sealing_version").on(table.sealingVersion),
  ],
);

/**
 * One row per number that is not free. A number reserved by an invitation has no user and no `ordinal`. An issued badge has
 * an `ordinal`, which stays when the badge ends: its number is never issued again.
 *
 * Callers see a badge as expired when `expiresAt` has passed, even if the stored state is another (src/shared/badge-lifecycle/states.ts).
 *
 * These columns are D1's and the allocator's (src/worker/allocator/tables/schema.ts).
 */
export const badgeColumns = {
  /** The badge number; as the primary key it is unique over all applications. */
  number: integer("number").primaryKey(),
  /** Device ID: the keyed hash of the udid (src/worker/applications/derived-ids.ts). */
  device: text("device").$type<DeviceId>(),
  userId: text("user_id"),
  /** The visitor's name, from the claimed invitation. */
  name: text("name"),
  /** JSON with the known fields in one order, so that equal metadata is equal text. */
  metadata: text("metadata"),
  signingKeyId: integer("signing_key_id"),
  /** ID of the `badge:created` event. */
  eventId: text("event_id"),
  /** The badge's place in the application's order of issue. Assigned once, never reused. */
  ordinal: integer("ordinal"),
  /** Counts the logins of a device: its current badge has the highest (src/worker/storage/device-badges.ts). */
  loginSequence: integer("login_sequence"),
  /** Digest of the invitation token that reserved this number. */
  invitation: text("invitation").$type<InvitationDigest>(),
  issuedAt: integer("issued_at"),
  /** The stored state. It does not include expiry, which the clock decides. Meaningless for a reservation. */
  state: text("state").$type<StoredState>().notNull().default("active"),
  /** Time from which the badge is expired; null if it has no end. */
  expiresAt: integer("expires_at"),
  /** Before this time the badge cannot sign; null if it can from its issue on. */
  startsAt: integer("starts_at"),
  /** When the badge left the lists: it was revoked or replaced, or its expiry was recorded. A later end clears it. */
  endedAt: integer("ended_at"),
  /** When another badge superseded this one as the badge of its user device. */
  supersededAt: integer("superseded_at"),
  /**
   * RFC 7638 thumbprint of the key that the badge is bound to; null if unbound. The key itself
   * comes with each proof.
   */
  keyThumbprint: text("key_thumbprint"),
  /** Until this time another key may replace the bound one; null if none may. */
  rebindUntil: integer("rebind_until"),
  /** Number of the badge's last change, higher than all earlier ones of its application. */
  change: integer("change"),
  changedAt: integer("changed_at"),
  /**
   * `change` of the last change of `state`, `ended_at` or `expires_at`; null if none since the badge was issued. Status
   * lists read newer changes by it. Every statement that sets one of the three also sets this.
   */
  statusChange: integer("status_change"),
};

export const badge = sqliteTable("badge", { ...badgeColumns, applicationId: ofApplication() }, (table) => [
  // One badge per user device (issue path); the current badge of a device that has had one user (sign). Unbound badges
  // come first, so that a device's unbound badge is found among any number of bound ones. Every statement that issues a
  // badge ensures that a user device does not get one of each kind.
  uniqueIndex("badge_user_device")
    .on(table.applicationId, table.device, sql`(key_thumbprint IS NOT NULL)`, table.userId)
    .where(sql`ordinal IS NOT NULL AND superseded_at IS NULL`),
  // The current badge of a device that has had several users, and its current unbound one. A device's first badge
  // has login sequence 1, so most new badges write no row of this index.
  index("badge_device_login")
    .on(table.applicationId, table.device, sql`(key_thumbprint IS NOT NULL)`, table.loginSequence)
    .where(sql`ordinal IS NOT NULL AND superseded_at IS NULL AND login_sequence > 1`),
  // A device's current badge of one key (sign). Unbound badges write no row of it.
  index("badge_device_key")
    .on(table.applicationId, table.device, table.keyThumbprint, table.loginSequence)
    .where(sql`ordinal IS NOT NULL AND superseded_at IS NULL AND key_thumbprint IS NOT NULL`),
  // GET /v1/badges, without reading ended badges; the application's last ordinal, of live and of ended badges.
  index("badge_page")
    .on(table.applicationId, sql`(ended_at IS NOT NULL)`, table.ordinal)
    .where(sql`ordinal IS NOT NULL`),
  // GET /v1/users/{id}/badges; blocking a user.
  index("badge_user_page")
    .on(table.applicationId, table.userId, sql`(ended_at IS NOT NULL)`, table.ordinal)
    .where(sql`ordinal IS NOT NULL`),
  // GET /v1/changes; the application's last change.
  index("badge_change").on(table.applicationId, table.change).where(sql`ordinal IS NOT NULL`),
  // A status list: what has changed since it was built? 131,072 is STATUS_LIST_ENTRIES. No row of a badge that has only been
  // issued.
  index("badge_status")
    .on(table.applicationId, sql`(ordinal / 131072)`, table.statusChange)
    .where(sql`status_change IS NOT NULL`),
  // GET /v1/badges?state=…, for all states but active (src/worker/storage/badges.ts). No row of an active badge.
  index("badge_state")
    .on(
      table.applicationId,
      // Without a comma, at which drizzle-kit would split it.
      sql`(CASE WHEN ended_at IS NULL THEN state WHEN state = 'active' THEN 'expired' WHEN state = 'suspended' THEN 'expired' ELSE state END)`,
      table.ordinal,
    )
    .where(sql`ordinal IS NOT NULL AND (state <> 'active' OR ended_at IS NOT NULL)`),
  // Which badges have an unrecorded expiry? Few badges have an end.
  index("badge_expiry")
    .on(table.applicationId, table.expiresAt)
    .where(sql`expires_at IS NOT NULL AND ended_at IS NULL`),
  // The same in one status list. 131,072 is STATUS_LIST_ENTRIES.
  index("badge_status_expiry")
    .on(table.applicationId, sql`(ordinal / 131072)`, table.expiresAt)
    .where(sql`expires_at IS NOT NULL AND ended_at IS NULL`),
]);

/** Blocked users, who get no badge. A user without any badge can be blocked, too. D1's columns and the allocator's. */
export const blockedUserColumns = {
  /** The user ID; of a user who was erased while blocked, the alias. */
  userId: text("user_id").notNull(),
  blockedAt: integer("blocked_at").notNull(),
  /** Keyed digest of an erased user's ID, by which the block outlives the erasure (contract section 24); else null. */
  userDigest: text("user_digest").$type<UserDigest>(),
};

export const blockedUser = sqliteTable(
  "blocked_user",
  { ...blockedUserColumns, applicationId: ofApplication() },
  (table) => [
    primaryKey({ columns: [table.applicationId, table.userId] }),
    // GET /v1/users?state=blocked, oldest first.
    index("blocked_user_page").on(table.applicationId, table.blockedAt, table.userId),
    // GET /v1/users/{id} of an erased user.
    index("blocked_user_digest").on(table.applicationId, table.userDigest).where(sql`user_digest IS NOT NULL`),
  ],
);

/**
 * One row that the home's scheduler updates every minute. The scheduler also stores the sequence number that it wrote
 * last. If D1 has a lower one at the next tick, D1 was restored to an older state; if a higher one, it may have been.
 */
export const heartbeat = sqliteTable("heartbeat", {
  id: integer("id").primaryKey(),
  sequence: integer("sequence").notNull(),
  /**
   * The time by which a replica proves its age. After a restore it is not updated until all allocators have compared, or could
   * not be reached for ten minutes.
   */
  tickedAt: integer("ticked_at").notNull(),
  /**
   * The start of an event ID, `eventIdPrefix`: every pending event with a lower ID has a due time
   * (src/shared/pending-events.ts). It is in D1 instead of the scheduler's object, so that a restored D1 has the value
   * for its own events.
   */
  untriedFrom: text("untried_from").notNull().default(""),
});

/**
 * The maximum length of visits of each class, in milliseconds; one more class has the longer visits. A visit that overlaps a
 * period begins in it, or at most its class's length before it.
 */
export const VISIT_CLASSES = [1, 7, 32].map((days) => days * DAY_MILLISECONDS);

type VisitTimes = Record<"createdAt" | "badgeStartsAtTime" | "badgeExpiresAtTime" | "expiresAtTime", SQLiteColumn>;

/** When the visit of an invitation begins (contract section 19). Without commas, at which drizzle-kit would split an index. */
export const visitBegin = ({ badgeStartsAtTime, createdAt }: VisitTimes): SQL<number> =>
  sql`(CASE WHEN ${badgeStartsAtTime} IS NULL THEN ${createdAt} ELSE ${badgeStartsAtTime} END)`;

/** When it ends. */
export const visitEnd = ({ badgeExpiresAtTime, expiresAtTime }: VisitTimes): SQL<number> =>
  sql`(CASE WHEN ${badgeExpiresAtTime} IS NULL THEN ${expiresAtTime} ELSE ${badgeExpiresAtTime} END)`;

/** The number of `VISIT_CLASSES` that are shorter than the visit. */
export const visitClass = (times: VisitTimes): SQL<number> =>
  sql`(${sql.join(
    VISIT_CLASSES.map((length) => sql`(${visitEnd(times)} - ${visitBegin(times)} > ${sql.raw(String(length))})`),
    sql` + `,
  )})`;

/** D1's columns and the allocator's. */
export const invitationColumns = {
  /** SHA-256 of the invitation token. */
  digest: text("digest").$type<InvitationDigest>().primaryKey(),
  number: integer("number").notNull(),
  state: text("state", { enum: INVITATION_STATES }).notNull(),
  /** Device ID of its creator. */
  creatorDevice: text("creator_device").$type<DeviceId>().notNull(),
  /** Created with the application's secret: only such an invitation replaces a revoked badge. */
  withSecret: integer("with_secret", { mode: "boolean" }).notNull().default(false),
  /** Created with a console secret of the role `reception`: it vouches for visitors only (contract section 22). */
  byReception: integer("by_reception", { mode: "boolean" }).notNull().default(false),
  /** Exactly as it was sent. */
  expiresAt: text("expires_at").notNull(),
  /** When the invitation ends: at `expiresAt`, or at `badgeExpiresAt` if that is earlier. */
  expiresAtTime: integer("expires_at_time").notNull(),
  /** End of the badge that is claimed, exactly as it was sent, and in milliseconds, also if it was changed since. */
  badgeExpiresAt: text("badge_expires_at"),
  badgeExpiresAtTime: integer("badge_expires_at_time"),
  /** Start of the badge that is claimed, exactly as it was sent, and in milliseconds, also if it was changed since. */
  badgeStartsAt: text("badge_starts_at"),
  badgeStartsAtTime: integer("badge_starts_at_time"),
  /** Name of the invited person. */
  name: text("name"),
  /** The user that a claim must name; null for any user. */
  userId: text("user_id"),
  createdAt: integer("created_at").notNull(),
  /** When it was claimed, revoked or found expired. */
  endedAt: integer("ended_at"),
  claimDevice: text("claim_device").$type<DeviceId>(),
  claimUserId: text("claim_user_id"),
};

export const invitation = sqliteTable(
  "invitation",
  { ...invitationColumns, applicationId: ofApplication() },
  (table) => [
    // GET /v1/invitations, newest first.
    index("invitation_page").on(table.applicationId, table.createdAt),
    // GET /v1/invitations?state=…, newest first.
    index("invitation_state").on(table.applicationId, table.state, table.createdAt),
    // GET /v1/invitations?from=…&until=…, in the order in which visits begin (src/worker/storage/invitation-list.ts).
    index("invitation_visit").on(table.applicationId, visitClass(table), visitBegin(table)),
    // Which of an application's invitations are past their time?
    index("invitation_due").on(table.applicationId, table.expiresAtTime).where(sql`state = 'pending'`),
    // Erasing a user: which invitations name them?
    index("invitation_user").on(table.applicationId, table.userId).where(sql`user_id IS NOT NULL`),
  ],
);

/** One segment of a number range, with an order of its own; its first `used` numbers in that order are taken. */
export interface RangeSegment {
  first: number;
  size: number;
  used: number;
}

/** What an allocator counts. D1's head has these columns, and so has each entry of the log. */
export const counterColumns = {
  /** The segments of the number range; one is added when the range grows. */
  rangeSegments: text("range_segments", { mode: "json" }).$type<RangeSegment[]>().notNull(),
  /** The last ordinal and the last change number. */
  lastOrdinal: integer("last_ordinal").notNull(),
  lastChange: integer("last_change").notNull(),
  /** ID of the last signing key that a badge was issued with. */
  lastSigningKey: integer("last_signing_key").notNull(),
  /** Part of every cursor of `GET /v1/changes`; a new one expires them. */
  epoch: text("epoch").notNull(),
  /** The clock hour of `--new-badges-per-hour`, in hours since 1970-01-01 UTC, and fresh numbers used in it without the secret. */
  hour: integer("hour").notNull(),
  hourUsed: integer("hour_used").notNull(),
  statistics: statisticsColumn("statistics").notNull(),
};

/**
 * The head of an application's log in D1: the last entry that D1 has, and the counters as it left them. Every batch of the
 * allocator moves this row from the previous entry to the next, or changes nothing (docs/architecture.md).
 */
export const applicationHead = sqliteTable("application_head", {
  applicationId: text("application_id").$type<ApplicationId>().primaryKey(),
  /** Sequence number of the last entry, and its random ID. */
  sequence: integer("sequence").notNull(),
  entry: text("entry").notNull(),
  ...counterColumns,
  /** Badges issued per day, on up to 90 days before the day in `statistics`. Only D1 has them, not the allocator. */
  pastDays: text("past_days", { mode: "json" }).$type<Record<string, number>>().notNull().default({}),
  /** The readers' flag: after a restore, the sequence number from which D1 may be read again; 0 if it may be read. */
  readableFrom: integer("readable_from").notNull().default(0),
  /** Numbers that D1 refused because another application has them, until the allocator has withdrawn them. */
  refused: text("refused", { mode: "json" }).$type<number[]>().notNull().default([]),
  /** Time from which the log has every entry, in milliseconds, if the allocator once had no room for 31 days of them; else null. */
  logSince: integer("log_since"),
});

/** Numbers that were reserved and are available again. D1's columns and the allocator's. */
export const freedNumberColumns = {
  number: integer("number").primaryKey(),
  freedAt: integer("freed_at").notNull(),
};

export const freedNumber = sqliteTable(
  "freed_number",
  { ...freedNumberColumns, applicationId: ofApplication() },
  // How many of an application's freed numbers are still within the reuse delay?
  (table) => [index("freed_number_reusable").on(table.applicationId, table.freedAt)],
);

/** Commands of the administration script that the service carries out (contract section 21; src/shared/script-commands.ts). */
export const scriptCommand = sqliteTable(
  "script_command",
  {
    id: text("id").primaryKey(),
    /** The application whose allocator carries it out; `home`: the home's scheduler does. */
    recipient: text("recipient").notNull(),
    /** JSON. */
    command: text("command").notNull(),
    createdAt: integer("created_at").notNull(),
    /** JSON; null until the command is carried out. */
    result: text("result"),
  },
  // Which commands wait?
  (table) => [index("script_command_open").on(table.recipient, table.createdAt).where(sql`result IS NULL`)],
);

/** Who did what. Rows are written with the change that they report. */
export const history = sqliteTable(
  "history",
  {
    applicationId: ofApplication(),
    /** Sorts by time (src/shared/history.ts). */
    id: text("id").notNull(),
    at: integer("at").notNull(),
    action: text("action", { enum: HISTORY_ACTIONS }).notNull(),
    actorKind: text("actor_kind", { enum: ACTOR_KINDS }).notNull(),
    actorName: text("actor_name"),
    badge: integer("badge"),
    userId: text("user_id"),
    requestId: text("request_id"),
    reason: text("reason"),
    /** JSON. */
    detail: text("detail"),
  },
  (table) => [
    primaryKey({ columns: [table.applicationId, table.id] }),
    // GET /v1/history of a badge, and of a user.
    index("history_badge").on(table.applicationId, table.badge, table.id).where(sql`badge IS NOT NULL`),
    index("history_user").on(table.applicationId, table.userId, table.id).where(sql`user_id IS NOT NULL`),
    // Erasing a user: what have they done themselves?
    index("history_actor").on(table.applicationId, table.actorName, table.id).where(sql`actor_name IS NOT NULL`),
  ],
);

/** Delivery states of an event. `exhausted`: all attempts failed; `held`: waits until the endpoint is released. */
export const EVENT_STATES = ["pending", "delivered", "exhausted", "held"] as const;
export type EventState = (typeof EVENT_STATES)[number];

/**
 * The outbox. A row is written in the transaction that it reports. Every attempt signs and sends exactly `payload`.
 *
 * The table is WITHOUT ROWID, which Drizzle cannot express (migrations/0000_tables.sql): its primary key is the table
 * itself, not an index beside it, so an event that nobody waits for is one billed row. A statement cannot use `rowid`.
 */
export const webhookEvent = sqliteTable(
  "webhook_event",
  {
    applicationId: ofApplication(),
    /** `evt_` and a ULID, which sorts by time. */
    id: text("id").notNull(),
    event: text("event").$type<EventName>().notNull(),
    payload: text("payload").notNull(),
    state: text("state", { enum: EVENT_STATES }).notNull(),
    /** Attempts recorded since the event was made or replayed. */
    attempts: integer("attempts").notNull().default(0),
    /**
     * When the next attempt is due; 0 and below: at once. Null for a new event, which writes no row of the index: it is found by its
     * ID, which has its time, and gets a due time when it has failed, or was not tried soon (src/worker/storage/webhook-backlog.ts).
     */
    dueAt: integer("due_at"),
    /**
     * End of a sender's lease, during which no other sender takes the event; 0 without a lease. It is in no index, so a
     * lease writes one row; moving `dueAt` would also write its index.
     */
    leaseUntil: integer("lease_until").notNull().default(0),
    lastStatus: integer("last_status"),
    /** The last attempt: its outcome in one word, the first bytes of the response, and its duration. */
    lastOutcome: text("last_outcome"),
    lastResponse: text("last_response"),
    lastMilliseconds: integer("last_milliseconds"),
    createdAt: integer("created_at").notNull(),
    deliveredAt: integer("delivered_at"),
  },
  (table) => [
    primaryKey({ columns: [table.applicationId, table.id] }),
    // Which events that have failed are due, of each application?
    index("webhook_event_due")
      .on(table.applicationId, table.dueAt)
      .where(sql`state = 'pending' AND due_at IS NOT NULL`),
    // Releasing held events, replaying exhausted ones. Only stopped events have a row.
    index("webhook_event_stopped")
      .on(table.applicationId, table.state, table.id)
      .where(sql`state IN ('exhausted', 'held')`),
  ],
);

/**
 * Logins of an application whose user tokens are only observed, by hour. It has only the rows of
 * the last day, because each count deletes older ones.
 */
export const observedLogins = sqliteTable(
  "observed_logins",
  {
    applicationId: ofApplication(),
    /** Hours since 1970-01-01 UTC. */
    hour: integer("hour").notNull(),
    withToken: integer("with_token").notNull(),
    withoutToken: integer("without_token").notNull(),
    withWrongToken: integer("with_wrong_token").notNull(),
  },
  (table) => [primaryKey({ columns: [table.applicationId, table.hour] })],
);

/**
 * Saved status lists. Later changes are in `badge`, so a missing or old row costs only time.
 * Expiries that are not recorded yet are in no row.
 */
export const statusList = sqliteTable(
  "status_list",
  {
    applicationId: ofApplication(),
    list: integer("list").notNull(),
    /** The highest `status_change` that is in it. */
    through: integer("through").notNull(),
    /** Its entries, as the JWT has them: zlib, base64url. */
    lst: text("lst").notNull(),
  },
  (table) => [primaryKey({ columns: [table.applicationId, table.list] })],
);

/**
 * What is deployed, one row, in home 1. `deploy` writes it before it uploads, and refuses a checkout that is older; the Worker
 * does not use it.
 */
export const deployment = sqliteTable("deployment", {
  id: integer("id").primaryKey(),
  /** The version of package.json. */
  release: text("release").notNull(),
  /** The commit of the checkout, 40 hexadecimal digits; null: it was no clone. */
  commit: text("commit"),
  deployedAt: integer("deployed_at").notNull(),
});
