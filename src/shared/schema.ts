import { relations, sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { ApplicationId, DeviceId, InvitationDigest } from "./identifiers.ts";
import { DEFAULT_STATUS_LIFETIME_SECONDS, DEFAULT_USER_CLAIM } from "./limits.ts";

/**
 * The D1 tables. Times are milliseconds since 1970-01-01 UTC. Every index names the query it serves, because it costs a
 * billed row per write. Digests are base64url, sealed values base64. A copy of these tables opens no door (contract section
 * 9).
 */

/** Public halves of the sealing keys; the private halves are Worker secrets named `SEALING_KEY_<version>`. */
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
    /** HMAC key that turns a udid into a device ID, the `device` of other tables; sealed. */
    sealedDeviceKey: text("sealed_device_key").notNull(),
    sealingVersion: integer("sealing_version").notNull(),
    webhookUrl: text("webhook_url"),
    /** Set while deliveries are held, because the endpoint responded 410 or only failed for a long time. */
    webhookHeldAt: integer("webhook_held_at"),
    /** Time of the first failure since the last success, and the number of failed attempts since then. */
    webhookFailingSince: integer("webhook_failing_since"),
    webhookFailures: integer("webhook_failures").notNull().default(0),
    /** Names of the events that the application subscribes to, separated by commas (contract section 18). */
    events: text("events").notNull().default("badge:created"),
    /**
     * 128 random bits in hex, part of every cursor of `GET /v1/changes`. Renewed when D1 is found to have been restored to
     * an older state, so that the cursors issued before expire.
     */
    feedEpoch: text("feed_epoch").notNull().default(""),
    /** Whether badge signatures name a status list, and the lists are published (contract section 14). */
    statusList: integer("status_list", { mode: "boolean" }).notNull().default(false),
    /** How long a door may go on without a newer status list. */
    statusLifetimeSeconds: integer("status_lifetime_seconds").notNull().default(DEFAULT_STATUS_LIFETIME_SECONDS),
    /** Whether device calls need a proof, and badges a key (contract section 15). */
    requireProof: integer("require_proof", { mode: "boolean" }).notNull().default(false),
    /** Until when the first proof on `POST /v1/badge` binds an unbound badge; null: never. */
    bindUntil: integer("bind_until"),
    /** The OpenID provider whose tokens say who has logged in (contract section 22); null: none is asked for. */
    userIssuer: text("user_issuer"),
    /** What `aud` of a user token must contain; not null if there is an issuer. */
    userAudience: text("user_audience"),
    /** The claim that contains the user ID. */
    userClaim: text("user_claim").notNull().default(DEFAULT_USER_CLAIM),
    /** Whether logins are counted by their tokens, and none is refused. */
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
 * The register of number ranges, of all homes (contract section 17). Every home has the table; only home 1's is used. Each
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
    applicationId: text("application_id")
      .$type<ApplicationId>()
      .notNull()
      .references(() => application.id),
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
 * Secrets for people, who use them at `/console` (contract section 19). They authenticate server calls and never key a
 * webhook, so only their digests are stored, and a sealing key can be removed without them.
 */
export const consoleSecret = sqliteTable(
  "console_secret",
  {
    applicationId: text("application_id")
      .$type<ApplicationId>()
      .notNull()
      .references(() => application.id),
    /** Whose secret it is; unique within the application. */
    name: text("name").notNull(),
    id: text("id").notNull(),
    /** SHA-256 of the secret. */
    digest: text("digest").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.applicationId, table.name] })],
);

/**
 * An application's signing keys. New badges get the newest key, the one with the highest `id`, whose `signsFrom` has
 * passed (currentSigningKey in credentials.ts); a badge keeps the key it was issued with.
 */
export const signingKey = sqliteTable(
  "signing_key",
  {
    id: integer("id").primaryKey({ autoIncrement: true }),
    applicationId: text("application_id")
      .$type<ApplicationId>()
      .notNull()
      .references(() => application.id),
    /** Key ID in JWTs and in the JWK Set: the RFC 7638 thumbprint. */
    kid: text("kid").notNull(),
    /** SPKI DER of the ECDSA P-256 key, base64. */
    publicKey: text("public_key").notNull(),
    /** PKCS #8 DER of the private key, sealed. */
    sealed: text("sealed").notNull(),
    sealingVersion: integer("sealing_version").notNull(),
    createdAt: integer("created_at").notNull(),
    /** From when new badges get this key. It is published earlier, so that every cached key set has it by then. */
    signsFrom: integer("signs_from").notNull().default(0),
  },
  (table) => [
    index("signing_key_application").on(table.applicationId),
    index("signing_key_sealing_version").on(table.sealingVersion),
  ],
);

/** States that are stored. Whether a badge has expired is decided by the clock. */
export const STORED_STATES = ["active", "suspended", "revoked", "replaced"] as const;
export type StoredState = (typeof STORED_STATES)[number];

/**
 * One row per number that is not free. A number reserved by an invitation has no user and no `position`. An issued badge has
 * a `position`, which stays when the badge ends: its number is never issued again.
 *
 * Callers see a badge as expired when `expiresAt` has passed, whatever is stored (src/shared/badge-life/states.ts).
 */
export const badge = sqliteTable(
  "badge",
  {
    /** The badge number; as the primary key it is unique over all applications. */
    number: integer("number").primaryKey(),
    applicationId: text("application_id").$type<ApplicationId>().notNull(),
    /** Device ID: the keyed hash of the udid (src/worker/applications/devices.ts). */
    device: text("device").$type<DeviceId>(),
    userId: text("user_id"),
    /** JSON with the known fields in one order, so that equal metadata is equal text. */
    metadata: text("metadata"),
    signingKeyId: integer("signing_key_id"),
    /** ID of the `badge:created` event; a repeated write recognizes its own badge by it. */
    eventId: text("event_id"),
    /** Orders an application's badges by when they were issued. Assigned once, never reused. */
    position: integer("position"),
    /** Sequence number of logins within a device: its current badge has the highest (src/worker/storage/turns.ts). */
    turn: integer("turn"),
    /** Digest of the invitation token that reserved this number. */
    invitation: text("invitation").$type<InvitationDigest>(),
    issuedAt: integer("issued_at"),
    /** Without expiry, which the clock decides. Meaningless for a reservation. */
    state: text("state", { enum: STORED_STATES }).notNull().default("active"),
    /** From when the badge is expired; null: it has no end. */
    expiresAt: integer("expires_at"),
    /** When the badge left the lists: it was revoked or replaced, or its expiry was recorded. A later end clears it. */
    endedAt: integer("ended_at"),
    /** When another badge superseded this one as the badge of its user device. */
    retiredAt: integer("retired_at"),
    /**
     * RFC 7638 thumbprint of the key that the badge is bound to (contract section 15); null: it is not bound. The key itself
     * comes with each proof.
     */
    keyThumbprint: text("key_thumbprint"),
    /** Until when another key may take the place of that one; null: none may. */
    rebindUntil: integer("rebind_until"),
    /**
     * Number of the badge's last change (contract section 13), higher than all earlier ones of its application. Null for
     * badges of release 1.0 that have not changed since; their position is used instead.
     */
    change: integer("change"),
    changedAt: integer("changed_at"),
  },
  (table) => [
    // One badge per user device (issue path); the current badge of a device that has had one user (sign). Unbound badges come
    // first, so that a device's unbound badge is found however many bound ones it has. Every statement that issues a badge
    // makes sure itself that a user device does not get one of each kind.
    uniqueIndex("badge_user_device")
      .on(table.applicationId, table.device, sql`(key_thumbprint IS NOT NULL)`, table.userId)
      .where(sql`position IS NOT NULL AND retired_at IS NULL`),
    // The current badge of a device that has had several users, and its current unbound one. The first badge of a device has
    // turn 1, so most new badges write no row of this index.
    index("badge_device_turn")
      .on(table.applicationId, table.device, sql`(key_thumbprint IS NOT NULL)`, table.turn)
      .where(sql`position IS NOT NULL AND retired_at IS NULL AND turn > 1`),
    // A device's current badge of one key (sign). Unbound badges write no row of it.
    index("badge_device_key")
      .on(table.applicationId, table.device, table.keyThumbprint, table.turn)
      .where(sql`position IS NOT NULL AND retired_at IS NULL AND key_thumbprint IS NOT NULL`),
    // GET /v1/badges, without reading ended badges; the application's last position, of live and of ended badges.
    index("badge_page")
      .on(table.applicationId, sql`(ended_at IS NOT NULL)`, table.position)
      .where(sql`position IS NOT NULL`),
    // GET /v1/users/{id}/badges; blocking a user.
    index("badge_user_page")
      .on(table.applicationId, table.userId, sql`(ended_at IS NOT NULL)`, table.position)
      .where(sql`position IS NOT NULL`),
    // GET /v1/changes; the application's last change.
    index("badge_change")
      .on(table.applicationId, sql`(CASE WHEN change IS NULL THEN position ELSE change END)`)
      .where(sql`position IS NOT NULL`),
    // A status list: which badges of a range of positions are not active? It has all columns that the list needs, and no
    // row of an active badge. Badges whose expiry is not recorded yet are found by the next index.
    index("badge_status")
      .on(table.applicationId, table.position, table.state, table.endedAt, table.expiresAt)
      .where(sql`position IS NOT NULL AND (state <> 'active' OR ended_at IS NOT NULL)`),
    // The sweep and status lists: which badges have expired without that being recorded? Few badges have an end.
    index("badge_expiry").on(table.expiresAt).where(sql`expires_at IS NOT NULL AND ended_at IS NULL`),
  ],
);

/** Blocked users, who get no badge (contract section 12), even if they never had one. */
export const blockedUser = sqliteTable(
  "blocked_user",
  {
    applicationId: text("application_id").$type<ApplicationId>().notNull(),
    userId: text("user_id").notNull(),
    blockedAt: integer("blocked_at").notNull(),
    /** True until every badge of the user has been revoked. */
    isRevoking: integer("is_revoking", { mode: "boolean" }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.applicationId, table.userId] }),
    // The sweep: whose badges are still to be revoked?
    index("blocked_user_revoking").on(table.blockedAt).where(sql`is_revoking = 1`),
  ],
);

/**
 * One row that the sweep writes every minute. One Durable Object remembers the sequence number as well: if D1's is not
 * ahead of that, D1 was restored to an older state.
 */
export const clock = sqliteTable("clock", {
  id: integer("id").primaryKey(),
  sequence: integer("sequence").notNull(),
  tickedAt: integer("ticked_at").notNull(),
});

/** Where an invitation is in its life; all but `pending` are final. */
export const INVITATION_STATES = ["pending", "claimed", "revoked", "expired"] as const;
export type InvitationState = (typeof INVITATION_STATES)[number];

export const invitation = sqliteTable(
  "invitation",
  {
    /** SHA-256 of the invitation token. */
    digest: text("digest").$type<InvitationDigest>().primaryKey(),
    applicationId: text("application_id").$type<ApplicationId>().notNull(),
    number: integer("number").notNull(),
    state: text("state", { enum: INVITATION_STATES }).notNull(),
    /** Device ID of its creator. */
    creatorDevice: text("creator_device").$type<DeviceId>().notNull(),
    /** Created with the application's secret: only such an invitation replaces a revoked badge. */
    withSecret: integer("with_secret", { mode: "boolean" }).notNull().default(false),
    /** Created with an Idempotency-Key: a caller that did not get the response can request it again. */
    isRepeatable: integer("is_repeatable", { mode: "boolean" }).notNull().default(false),
    /** Exactly as it was sent. */
    expiresAt: text("expires_at").notNull(),
    /** When the invitation ends: at `expiresAt`, or at `badgeExpiresAt` if that is earlier. */
    expiresAtTime: integer("expires_at_time").notNull(),
    /** End of the badge that is claimed, exactly as it was sent, and the same in milliseconds. */
    badgeExpiresAt: text("badge_expires_at"),
    badgeExpiresAtTime: integer("badge_expires_at_time"),
    createdAt: integer("created_at").notNull(),
    /** When it was claimed, revoked or found expired. */
    endedAt: integer("ended_at"),
    claimDevice: text("claim_device").$type<DeviceId>(),
    claimUserId: text("claim_user_id"),
    /** ID of the claim's `badge:created` event; a repeated claim recognizes its own earlier try by it. */
    claimEventId: text("claim_event_id"),
    /** When the allocator released the number of a revoked or expired invitation. */
    releasedAt: integer("released_at"),
  },
  (table) => [
    // GET /v1/invitations, newest first.
    index("invitation_page").on(table.applicationId, table.createdAt),
    // The sweep: which invitations are past their time?
    index("invitation_due").on(table.expiresAtTime).where(sql`state = 'pending'`),
    // The sweep: which ended invitations' numbers are not released yet?
    index("invitation_unreleased")
      .on(table.applicationId, table.endedAt)
      .where(sql`released_at IS NULL AND state IN ('revoked', 'expired')`),
  ],
);

/** Events that an application can subscribe to (contract section 18). */
export const SUBSCRIBABLE_EVENTS = [
  "badge:created",
  "badge:suspended",
  "badge:resumed",
  "badge:revoked",
  "badge:expired",
  "badge:replaced",
  "invitation:revoked",
  "invitation:expired",
] as const;
export type SubscribableEvent = (typeof SUBSCRIBABLE_EVENTS)[number];

/** All events. `webhook:test` is sent by an administrator's command. */
export const EVENTS = [...SUBSCRIBABLE_EVENTS, "webhook:test"] as const;

export type EventName = (typeof EVENTS)[number];

/** Delivery states of an event. `exhausted`: all attempts failed; `held`: waits until the endpoint is released. */
export const EVENT_STATES = ["pending", "delivered", "exhausted", "held"] as const;
export type EventState = (typeof EVENT_STATES)[number];

/**
 * The outbox. A row is written in the transaction that it reports. Every attempt signs and sends exactly `payload`.
 *
 * The table is WITHOUT ROWID, which Drizzle cannot express (migrations/0008_cheaper_rows.sql): its primary key is the table
 * itself, not an index beside it, so an event that nobody waits for is one billed row. A statement cannot use `rowid`.
 */
export const webhookEvent = sqliteTable(
  "webhook_event",
  {
    applicationId: text("application_id").$type<ApplicationId>().notNull(),
    /** `evt_` and a ULID, which sorts by time. */
    id: text("id").notNull(),
    event: text("event", { enum: EVENTS }).notNull(),
    payload: text("payload").notNull(),
    state: text("state", { enum: EVENT_STATES }).notNull(),
    /** Attempts recorded since the event was made or replayed. */
    attempts: integer("attempts").notNull().default(0),
    /** When the next attempt is due; 0: at once. */
    dueAt: integer("due_at").notNull(),
    /**
     * Until when a sender has claimed the event, so that no other sends it; 0: nobody has. It is in no index, so a claim
     * writes one row; moving `dueAt` would write its index too.
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
    // The sweep: what is due, of each application? One row when the event is recorded and one for each new due time; none
    // for a claim, and none when the event is delivered.
    index("webhook_event_due").on(table.applicationId, table.dueAt).where(sql`state = 'pending'`),
    // Releasing held events, replaying exhausted ones. A row only for an event that stops.
    index("webhook_event_stopped")
      .on(table.applicationId, table.state, table.id)
      .where(sql`state IN ('exhausted', 'held')`),
  ],
);

/**
 * Logins of an application whose user tokens are only observed (contract section 22), by hour. The rows of the last day and
 * no others: whoever counts deletes the older ones.
 */
export const observedLogins = sqliteTable(
  "observed_logins",
  {
    applicationId: text("application_id").$type<ApplicationId>().notNull(),
    /** Hours since 1970-01-01 UTC. */
    hour: integer("hour").notNull(),
    withToken: integer("with_token").notNull(),
    withoutToken: integer("without_token").notNull(),
    withWrongToken: integer("with_wrong_token").notNull(),
  },
  (table) => [primaryKey({ columns: [table.applicationId, table.hour] })],
);

/**
 * A request to make D1 and an application's object agree: by an administrator after one of them was restored, or by the
 * script, which revokes badges without the object (then only the last step, `revocations`).
 */
export const reconciliation = sqliteTable(
  "reconciliation",
  {
    applicationId: text("application_id").$type<ApplicationId>().primaryKey(),
    /** Which of the two was restored to an older state. */
    restored: text("restored", { enum: ["d1", "object"] }).notNull(),
    requestedAt: integer("requested_at").notNull(),
    /** Which rows are processed, and the last one so far: a lease's ID, a badge number or a change number. */
    step: text("step", { enum: ["leases", "badges", "revocations"] }).notNull(),
    through: integer("through").notNull(),
    /** How many rows or leases were checked, and how many had to be changed. */
    checked: integer("checked").notNull().default(0),
    changed: integer("changed").notNull().default(0),
    finishedAt: integer("finished_at"),
  },
  // The sweep: which reconciliations are unfinished?
  (table) => [index("reconciliation_open").on(table.requestedAt).where(sql`finished_at IS NULL`)],
);

export const applicationRelations = relations(application, ({ many }) => ({
  secrets: many(applicationSecret),
  consoleSecrets: many(consoleSecret),
  signingKeys: many(signingKey),
}));

export const applicationSecretRelations = relations(applicationSecret, ({ one }) => ({
  application: one(application, { fields: [applicationSecret.applicationId], references: [application.id] }),
}));

export const consoleSecretRelations = relations(consoleSecret, ({ one }) => ({
  application: one(application, { fields: [consoleSecret.applicationId], references: [application.id] }),
}));

export const signingKeyRelations = relations(signingKey, ({ one }) => ({
  application: one(application, { fields: [signingKey.applicationId], references: [application.id] }),
}));
