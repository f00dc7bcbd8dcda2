import { relations, sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/**
 * The D1 tables. Times are milliseconds since 1970-01-01 UTC. Every index names the query it serves, because each is a
 * billed row per write. Digests and sealed values are base64url text; nothing here opens a door by itself (contract
 * section 9).
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
    id: text("id").primaryKey(),
    name: text("name").notNull(),
    firstNumber: integer("first_number").notNull(),
    lastNumber: integer("last_number").notNull(),
    requireSecret: integer("require_secret", { mode: "boolean" }).notNull().default(false),
    reuseAfterSeconds: integer("reuse_after_seconds").notNull().default(0),
    signatureLifetimeSeconds: integer("signature_lifetime_seconds"),
    /** HMAC key that turns a udid into the `device` of other tables, sealed. */
    sealedDeviceKey: text("sealed_device_key").notNull(),
    sealingVersion: integer("sealing_version").notNull(),
    webhookUrl: text("webhook_url"),
    /** Set while deliveries are held: the endpoint said 410 or did nothing but fail. */
    webhookHeldAt: integer("webhook_held_at"),
    /** First failure since the last success, and the failed attempts since then. */
    webhookFailingSince: integer("webhook_failing_since"),
    webhookFailures: integer("webhook_failures").notNull().default(0),
    /** Names of the events that the application subscribes to, separated by commas (contract section 18). */
    events: text("events").notNull().default("badge:created"),
    /**
     * 128 random bits in hex that every cursor of `GET /v1/changes` carries. Renewed once it is noticed that D1 was
     * restored to an older state, so that cursors from the time after that state expire.
     */
    feedEpoch: text("feed_epoch").notNull().default(""),
    createdAt: integer("created_at").notNull(),
    disabledAt: integer("disabled_at"),
  },
  (table) => [
    // Do two ranges overlap? The neighbour below is found by this index.
    uniqueIndex("application_first_number").on(table.firstNumber),
    // Re-sealing: which rows still need an older key?
    index("application_sealing_version").on(table.sealingVersion),
  ],
);

/**
 * At most two live secrets an application: the `current` one, and beside it an `added` one (before promotion) or the
 * `previous` one (after it).
 */
export const applicationSecret = sqliteTable(
  "application_secret",
  {
    id: text("id").primaryKey(),
    applicationId: text("application_id")
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
    // The secrets of one application; never two in one role.
    uniqueIndex("application_secret_role").on(table.applicationId, table.role),
    index("application_secret_sealing_version").on(table.sealingVersion),
  ],
);

/**
 * An application's signing keys. New badges get the newest key, the one with the highest `id`, whose `signsFrom` has
 * passed (src/worker/keys/signing-keys.ts); a badge keeps the key it was issued with.
 */
export const signingKey = sqliteTable(
  "signing_key",
  {
    id: integer("id").primaryKey({ autoIncrement: true }),
    applicationId: text("application_id")
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
    /** From when new badges get this key. It is published before that, so that every cached key set has it by then. */
    signsFrom: integer("signs_from").notNull().default(0),
  },
  (table) => [
    index("signing_key_application").on(table.applicationId),
    index("signing_key_sealing_version").on(table.sealingVersion),
  ],
);

/** What is stored of a badge's state. Whether it has expired is decided by the clock. */
export const STORED_STATES = ["active", "suspended", "revoked", "replaced"] as const;
export type StoredState = (typeof STORED_STATES)[number];

/**
 * One row a number that is not free. Reserved by an invitation: without a user and a position. Issued: `position` is set,
 * and stays set when the badge ends; its number is never handed out again.
 *
 * Callers see a badge as expired when `expiresAt` has passed, whatever is stored (src/worker/badges/states.ts).
 */
export const badge = sqliteTable(
  "badge",
  {
    /** The badge number; as the primary key it is unique over all applications. */
    number: integer("number").primaryKey(),
    applicationId: text("application_id").notNull(),
    /** Keyed digest of the udid (src/worker/applications/devices.ts). */
    device: text("device"),
    userId: text("user_id"),
    /** JSON with the known fields in one order, so that equal metadata is equal text. */
    metadata: text("metadata"),
    signingKeyId: integer("signing_key_id"),
    /** ID of the badge:created event; also tells a repeated write that the badge is its own. */
    eventId: text("event_id"),
    /** Orders an application's badges by issue. Assigned once, never reused. */
    position: integer("position"),
    /** Orders the badges of one device by when each was last given out: its current badge has the highest (turns.ts). */
    turn: integer("turn"),
    /** Digest of the invitation token that reserved this number. */
    invitation: text("invitation"),
    issuedAt: integer("issued_at"),
    /** What was decided last; expiry is decided by the clock. Meaningless for a reservation. */
    state: text("state", { enum: STORED_STATES }).notNull().default("active"),
    /** From when on the badge is expired; null: it has no end. */
    expiresAt: integer("expires_at"),
    /** When the badge left the lists: revoked, replaced, or its expiry was noted. A later `expiresAt` clears it. */
    endedAt: integer("ended_at"),
    /** Another badge has taken this one's place as the badge of its user device. */
    retiredAt: integer("retired_at"),
    /**
     * Number of the badge's last change within its application (contract section 13): higher than all before it. Badges
     * of release 1.0 that have not changed since have none; their position serves.
     */
    change: integer("change"),
    changedAt: integer("changed_at"),
  },
  (table) => [
    // One badge per user device (issue path); the current badge of a device that has had one user (sign).
    uniqueIndex("badge_user_device")
      .on(table.applicationId, table.device, table.userId)
      .where(sql`position IS NOT NULL AND retired_at IS NULL`),
    // The current badge of a device that has had several users. The first badge of a device has turn 1, so most new badges
    // write no row of this index.
    index("badge_device_turn")
      .on(table.applicationId, table.device, table.turn)
      .where(sql`position IS NOT NULL AND retired_at IS NULL AND turn > 1`),
    // GET /v1/badges, without passing over badges that have ended; the application's last position, of either kind.
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
    // The sweep: which badges have expired and are not noted yet? Few badges have an end.
    index("badge_expiry").on(table.expiresAt).where(sql`expires_at IS NOT NULL AND ended_at IS NULL`),
  ],
);

/** Users who get no badge (contract section 12), whether or not anybody has seen them yet. */
export const blockedUser = sqliteTable(
  "blocked_user",
  {
    applicationId: text("application_id").notNull(),
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
 * One row that the sweep writes every minute. An object remembers the sequence number, too: when D1's is not ahead of
 * that, D1 was restored to an older state.
 */
export const clock = sqliteTable("clock", {
  id: integer("id").primaryKey(),
  sequence: integer("sequence").notNull(),
  tickedAt: integer("ticked_at").notNull(),
});

export const invitation = sqliteTable(
  "invitation",
  {
    /** SHA-256 of the invitation token. */
    digest: text("digest").primaryKey(),
    applicationId: text("application_id").notNull(),
    number: integer("number").notNull(),
    state: text("state", { enum: ["pending", "claimed", "revoked", "expired"] }).notNull(),
    /** Keyed digest of the udid that created it. */
    creatorDevice: text("creator_device").notNull(),
    /** Created with the application's secret: only such an invitation replaces a revoked badge. */
    withSecret: integer("with_secret", { mode: "boolean" }).notNull().default(false),
    /** Created with an Idempotency-Key: whoever did not get the response can ask for it again. */
    isRepeatable: integer("is_repeatable", { mode: "boolean" }).notNull().default(false),
    /** `expiresAt` exactly as it was sent. */
    expiresAt: text("expires_at").notNull(),
    /** When the invitation ends: at `expiresAt`, or at `badgeExpiresAt` if that is earlier. */
    expiresAtTime: integer("expires_at_time").notNull(),
    /** End of the badge that is claimed, exactly as it was sent, and the same moment. */
    badgeExpiresAt: text("badge_expires_at"),
    badgeExpiresAtTime: integer("badge_expires_at_time"),
    createdAt: integer("created_at").notNull(),
    /** When it was claimed, revoked or found expired. */
    endedAt: integer("ended_at"),
    claimDevice: text("claim_device"),
    claimUserId: text("claim_user_id"),
    /** The claim's badge:created event; tells a repeated claim that the first one was its own. */
    claimEventId: text("claim_event_id"),
    /** Set once the number of a revoked or expired invitation is back with the allocator. */
    releasedAt: integer("released_at"),
  },
  (table) => [
    // GET /v1/invitations, newest first.
    index("invitation_page").on(table.applicationId, table.createdAt),
    // The sweep: which invitations are past their time?
    index("invitation_due").on(table.expiresAtTime).where(sql`state = 'pending'`),
    // The sweep: which numbers are still to be given back?
    index("invitation_unreleased")
      .on(table.applicationId, table.endedAt)
      .where(sql`released_at IS NULL AND state IN ('revoked', 'expired')`),
  ],
);

/** What an application can subscribe to (contract section 18). */
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

/** Every event that is sent; `webhook:test` by an administrator's command. */
export const EVENTS = [...SUBSCRIBABLE_EVENTS, "webhook:test"] as const;

export type EventName = (typeof EVENTS)[number];

/** The outbox. A row is written in the transaction of its badge, and `payload` is what is signed and sent, always. */
export const webhookEvent = sqliteTable(
  "webhook_event",
  {
    applicationId: text("application_id").notNull(),
    /** `evt_` and a ULID: sorted by time within an application. */
    id: text("id").notNull(),
    event: text("event", { enum: EVENTS }).notNull(),
    payload: text("payload").notNull(),
    state: text("state", { enum: ["pending", "delivered", "exhausted", "held"] }).notNull(),
    /** Attempts recorded since the event was made or replayed. */
    attempts: integer("attempts").notNull().default(0),
    /** When the next attempt is due; 0: at once. Claiming moves this ahead by the lease, so nobody else claims it. */
    dueAt: integer("due_at").notNull(),
    lastStatus: integer("last_status"),
    /** One word for the last outcome, the first bytes of the answer, and how long it took. */
    lastOutcome: text("last_outcome"),
    lastResponse: text("last_response"),
    lastMilliseconds: integer("last_milliseconds"),
    createdAt: integer("created_at").notNull(),
    deliveredAt: integer("delivered_at"),
  },
  (table) => [
    primaryKey({ columns: [table.applicationId, table.id] }),
    // The sweep: what is due, of each application?
    index("webhook_event_due").on(table.applicationId, table.dueAt).where(sql`state = 'pending'`),
    // Releasing what was held, replaying what was exhausted.
    index("webhook_event_stopped")
      .on(table.applicationId, table.state, table.id)
      .where(sql`state IN ('exhausted', 'held')`),
  ],
);

/** A request of an administrator to bring D1 and an application's object in line after one of them was restored. */
export const reconciliation = sqliteTable(
  "reconciliation",
  {
    applicationId: text("application_id").primaryKey(),
    /** Which of the two is older than it was. */
    restored: text("restored", { enum: ["d1", "object"] }).notNull(),
    requestedAt: integer("requested_at").notNull(),
    /** What is walked through, and how far the walk is: a lease's ID, or a badge number. */
    step: text("step", { enum: ["leases", "badges"] }).notNull(),
    through: integer("through").notNull(),
    /** Rows and leases looked at, and those that had to be changed. */
    checked: integer("checked").notNull().default(0),
    changed: integer("changed").notNull().default(0),
    finishedAt: integer("finished_at"),
  },
  // The sweep: what is still to be done?
  (table) => [index("reconciliation_open").on(table.requestedAt).where(sql`finished_at IS NULL`)],
);

export const applicationRelations = relations(application, ({ many }) => ({
  secrets: many(applicationSecret),
  signingKeys: many(signingKey),
}));

export const applicationSecretRelations = relations(applicationSecret, ({ one }) => ({
  application: one(application, { fields: [applicationSecret.applicationId], references: [application.id] }),
}));

export const signingKeyRelations = relations(signingKey, ({ one }) => ({
  application: one(application, { fields: [signingKey.applicationId], references: [application.id] }),
}));
