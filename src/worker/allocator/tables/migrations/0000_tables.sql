CREATE TABLE `allocator` (
	`id` integer PRIMARY KEY NOT NULL,
	`application_id` text NOT NULL,
	`copied_at` integer,
	`copy_after` text,
	`purged_at` integer DEFAULT 0 NOT NULL,
	`purge_after` text DEFAULT '' NOT NULL,
	`has_recorded_events` integer DEFAULT false NOT NULL,
	`touches` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE `badge` (
	`number` integer PRIMARY KEY NOT NULL,
	`device` text,
	`user_id` text,
	`name` text,
	`metadata` text,
	`signing_key_id` integer,
	`event_id` text,
	`ordinal` integer,
	`login_sequence` integer,
	`invitation` text,
	`issued_at` integer,
	`state` text DEFAULT 'active' NOT NULL,
	`expires_at` integer,
	`starts_at` integer,
	`ended_at` integer,
	`superseded_at` integer,
	`key_thumbprint` text,
	`rebind_until` integer,
	`change` integer,
	`changed_at` integer,
	`status_change` integer
);
--> statement-breakpoint
CREATE INDEX `badge_user_device` ON `badge` (`device`,`user_id`) WHERE ordinal IS NOT NULL AND superseded_at IS NULL;--> statement-breakpoint
CREATE INDEX `badge_device_login` ON `badge` (`device`,`login_sequence`) WHERE ordinal IS NOT NULL AND superseded_at IS NULL AND login_sequence > 1;--> statement-breakpoint
CREATE INDEX `badge_user` ON `badge` (`user_id`,(CASE WHEN state = 'revoked' OR state = 'replaced' THEN 2 ELSE ended_at IS NOT NULL END),`ordinal`) WHERE ordinal IS NOT NULL;--> statement-breakpoint
CREATE INDEX `badge_end` ON `badge` (`expires_at`) WHERE expires_at IS NOT NULL AND ended_at IS NULL;--> statement-breakpoint
CREATE TABLE `blocked_user` (
	`user_id` text PRIMARY KEY NOT NULL,
	`blocked_at` integer NOT NULL,
	`user_digest` text
);
--> statement-breakpoint
CREATE INDEX `blocked_user_digest` ON `blocked_user` (`user_digest`) WHERE user_digest IS NOT NULL;--> statement-breakpoint
CREATE TABLE `entry` (
	`sequence` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`range_segments` text NOT NULL,
	`last_ordinal` integer NOT NULL,
	`last_change` integer NOT NULL,
	`last_signing_key` integer NOT NULL,
	`epoch` text NOT NULL,
	`hour` integer NOT NULL,
	`hour_used` integer NOT NULL,
	`statistics` text NOT NULL,
	`changes` text NOT NULL,
	`calls` text NOT NULL,
	`logged_bytes` integer DEFAULT 0 NOT NULL,
	`kept_at` integer NOT NULL,
	`latest_at` integer DEFAULT 0 NOT NULL,
	`is_resent` integer DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE TABLE `erasure` (
	`alias` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`after_event` text NOT NULL,
	`through_event` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `freed_number` (
	`number` integer PRIMARY KEY NOT NULL,
	`freed_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `freed_number_reusable` ON `freed_number` (`freed_at`);--> statement-breakpoint
CREATE TABLE `invitation` (
	`digest` text PRIMARY KEY NOT NULL,
	`number` integer NOT NULL,
	`state` text NOT NULL,
	`creator_device` text NOT NULL,
	`with_secret` integer DEFAULT false NOT NULL,
	`by_reception` integer DEFAULT false NOT NULL,
	`expires_at` text NOT NULL,
	`expires_at_time` integer NOT NULL,
	`badge_expires_at` text,
	`badge_expires_at_time` integer,
	`badge_starts_at` text,
	`badge_starts_at_time` integer,
	`name` text,
	`user_id` text,
	`created_at` integer NOT NULL,
	`ended_at` integer,
	`claim_device` text,
	`claim_user_id` text
);
--> statement-breakpoint
CREATE INDEX `invitation_end` ON `invitation` (`expires_at_time`) WHERE state = 'pending';--> statement-breakpoint
CREATE INDEX `invitation_user` ON `invitation` (`user_id`) WHERE user_id IS NOT NULL;--> statement-breakpoint
CREATE TABLE `used_key` (
	`id` integer PRIMARY KEY NOT NULL,
	`key` text NOT NULL
);
