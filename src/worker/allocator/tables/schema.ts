import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { ApplicationId } from "../../../shared/identifiers.ts";
import {
  badgeColumns,
  blockedUserColumns,
  counterColumns,
  freedNumberColumns,
  invitationColumns,
} from "../../../shared/schema.ts";
import type { CallResult } from "../commands.ts";
import type { EntryKey, StoredChanges } from "../log-entry.ts";

/**
 * The allocator's own tables, in its object's SQLite. The first four are its application's rows: D1 has the same ones, with the
 * application ID. Every index names the query that it serves.
 */

export const badge = sqliteTable("badge", badgeColumns, (table) => [
  // The badge of a user device.
  index("badge_user_device").on(table.device, table.userId).where(sql`ordinal IS NOT NULL AND superseded_at IS NULL`),
  // A device's last login. Its first badge has login sequence 1, so most new badges write no row of it.
  index("badge_device_login")
    .on(table.device, table.loginSequence)
    .where(sql`ordinal IS NOT NULL AND superseded_at IS NULL AND login_sequence > 1`),
  // A user's badges: those that have not ended, then expired ones, then revoked and replaced ones.
  index("badge_user")
    .on(
      table.userId,
      sql`(CASE WHEN state = 'revoked' OR state = 'replaced' THEN 2 ELSE ended_at IS NOT NULL END)`,
      table.ordinal,
    )
    .where(sql`ordinal IS NOT NULL`),
  // Which badge ends next?
  index("badge_end").on(table.expiresAt).where(sql`expires_at IS NOT NULL AND ended_at IS NULL`),
]);

export const invitation = sqliteTable("invitation", invitationColumns, (table) => [
  // Which pending invitation ends next?
  index("invitation_end").on(table.expiresAtTime).where(sql`state = 'pending'`),
  // Erasing a user: which invitations name them?
  index("invitation_user").on(table.userId).where(sql`user_id IS NOT NULL`),
]);

export const blockedUser = sqliteTable("blocked_user", blockedUserColumns, (table) => [
  primaryKey({ columns: [table.userId] }),
  // Is an erased user blocked?
  index("blocked_user_digest").on(table.userDigest).where(sql`user_digest IS NOT NULL`),
]);

export const freedNumber = sqliteTable("freed_number", freedNumberColumns, (table) => [
  // Which freed numbers have been free for longest?
  index("freed_number_reusable").on(table.freedAt),
]);

/** The log: what each group of calls has changed, in order. The newest entry is the head. */
export const entry = sqliteTable("entry", {
  sequence: integer("sequence").primaryKey(),
  /** Random. */
  id: text("id").notNull(),
  /** As the entry left them. */
  ...counterColumns,
  /** What D1 is to store. */
  changes: text("changes", { mode: "json" }).$type<StoredChanges>().notNull(),
  /** The results of the group's calls. */
  calls: text("calls", { mode: "json" }).$type<CallResult[]>().notNull(),
  /** Bytes of this entry and of all entries before it, deleted ones included: two entries' difference is what lies between. */
  loggedBytes: integer("logged_bytes").notNull().default(0),
  /** When it was logged, or sent again, in milliseconds: it is kept 31 days from then. */
  keptAt: integer("kept_at").notNull(),
  /** The latest time at which this entry or an earlier one was logged, in milliseconds. The clock may have gone back since. */
  latestAt: integer("latest_at").notNull().default(0),
  /** Whether D1 may have had it and lost it since. */
  isResent: integer("is_resent", { mode: "boolean" }).notNull().default(false),
});

/**
 * Signing keys of badges: those that badges were issued with, and all that D1 had when its rows were copied. A badge keeps its key for
 * good (contract section 3), and a D1 that is older than the log lacks keys rotated since.
 */
export const usedKey = sqliteTable("used_key", {
  id: integer("id").primaryKey(),
  key: text("key", { mode: "json" }).$type<EntryKey>().notNull(),
});

/** One row: what the allocator knows of itself. */
export const allocator = sqliteTable("allocator", {
  id: integer("id").primaryKey(),
  applicationId: text("application_id").$type<ApplicationId>().notNull(),
  /** When the copy of D1's rows was done, in milliseconds; null: it is not, so the allocator counts as empty. */
  copiedAt: integer("copied_at"),
  /** Where the copy goes on; null: at the beginning. */
  copyAfter: text("copy_after", { mode: "json" }).$type<{
    table: string;
    key: readonly [string | number, string | number];
  }>(),
  /** When old invitations were last deleted, in milliseconds, and the digest after which the walk goes on; empty: it is done. */
  purgedAt: integer("purged_at").notNull().default(0),
  purgeAfter: text("purge_after").notNull().default(""),
  /** Whether D1 has ever recorded a webhook event: then the application had a URL. */
  hasRecordedEvents: integer("has_recorded_events", { mode: "boolean" }).notNull().default(false),
  /** Counts writes that change nothing: each fails in a superseded instance. */
  touches: integer("touches").notNull().default(0),
});

/** Erased users for whom D1's webhook events, then its history, must still be searched. */
export const erasure = sqliteTable("erasure", {
  alias: text("alias").primaryKey(),
  userId: text("user_id").notNull(),
  /** The event, or the row of the history, after which the search goes on; and the last event before the erasure. */
  afterEvent: text("after_event").notNull(),
  throughEvent: text("through_event").notNull(),
});
