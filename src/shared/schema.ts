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

/**
 * One row a number that is not free. `reserved`: by an invitation, without a user. `issued`: `position` is set, exactly
 * then. `retired`: `retiredAt` is set; the number is never handed out again.
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
    /** Place in the application's list, in the order of issue; set while issued. */
    position: integer("position"),
    /** Orders the badges of one device by when each was last given out: its current badge has the highest (turns.ts). */
    turn: integer("turn"),
    /** Digest of the invitation token that reserved this number. */
    invitation: text("invitation"),
    issuedAt: integer("issued_at"),
    retiredAt: integer("retired_at"),
  },
  (table) => [
    // One badge per user device (issue path); the current badge of a device that has had one user (sign).
    uniqueIndex("badge_user_device")
      .on(table.applicationId, table.device, table.userId)
      .where(sql`position IS NOT NULL`),
    // The current badge of a device that has had several users. The first badge of a device has turn 1, so most new badges
    // write no row of this index.
    index("badge_device_turn")
      .on(table.applicationId, table.device, table.turn)
      .where(sql`position IS NOT NULL AND turn > 1`),
    // GET /v1/badges
    uniqueIndex("badge_page").on(table.applicationId, table.position).where(sql`position IS NOT NULL`),
    // GET /v1/users/{id}/badges
    index("badge_user_page").on(table.applicationId, table.userId, table.position).where(sql`position IS NOT NULL`),
  ],
);

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
    /** `expiresAt` exactly as it was sent; `expiresAtTime` is the same moment. */
    expiresAt: text("expires_at").notNull(),
    expiresAtTime: integer("expires_at_time").notNull(),
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
    // The sweep: which invitations are past their time?
    index("invitation_due").on(table.expiresAtTime).where(sql`state = 'pending'`),
    // The sweep: which numbers are still to be given back?
    index("invitation_unreleased")
      .on(table.applicationId, table.endedAt)
      .where(sql`released_at IS NULL AND state IN ('revoked', 'expired')`),
  ],
);

/** The outbox. A row is written in the transaction of its badge, and `payload` is what is signed and sent, always. */
export const webhookEvent = sqliteTable(
  "webhook_event",
  {
    applicationId: text("application_id").notNull(),
    /** `evt_` and a ULID: sorted by time within an application. */
    id: text("id").notNull(),
    event: text("event", { enum: ["badge:created", "webhook:test"] }).notNull(),
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
