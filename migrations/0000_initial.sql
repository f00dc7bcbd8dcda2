CREATE TABLE `application` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`first_number` integer NOT NULL,
	`last_number` integer NOT NULL,
	`require_secret` integer DEFAULT false NOT NULL,
	`reuse_after_seconds` integer DEFAULT 0 NOT NULL,
	`signature_lifetime_seconds` integer,
	`sealed_device_key` text NOT NULL,
	`sealing_version` integer NOT NULL,
	`webhook_url` text,
	`webhook_held_at` integer,
	`webhook_failing_since` integer,
	`webhook_failures` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`disabled_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `application_first_number` ON `application` (`first_number`);--> statement-breakpoint
CREATE INDEX `application_sealing_version` ON `application` (`sealing_version`);--> statement-breakpoint
CREATE TABLE `application_secret` (
	`id` text PRIMARY KEY NOT NULL,
	`application_id` text NOT NULL,
	`role` text NOT NULL,
	`digest` text NOT NULL,
	`sealed` text NOT NULL,
	`sealing_version` integer NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`application_id`) REFERENCES `application`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `application_secret_role` ON `application_secret` (`application_id`,`role`);--> statement-breakpoint
CREATE INDEX `application_secret_sealing_version` ON `application_secret` (`sealing_version`);--> statement-breakpoint
CREATE TABLE `badge` (
	`number` integer PRIMARY KEY NOT NULL,
	`application_id` text NOT NULL,
	`device` text,
	`user_id` text,
	`metadata` text,
	`signing_key_id` integer,
	`event_id` text,
	`position` integer,
	`turn` integer,
	`invitation` text,
	`issued_at` integer,
	`retired_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `badge_user_device` ON `badge` (`application_id`,`device`,`user_id`) WHERE position IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `badge_page` ON `badge` (`application_id`,`position`) WHERE position IS NOT NULL;--> statement-breakpoint
CREATE INDEX `badge_user_page` ON `badge` (`application_id`,`user_id`,`position`) WHERE position IS NOT NULL;--> statement-breakpoint
CREATE TABLE `invitation` (
	`digest` text PRIMARY KEY NOT NULL,
	`application_id` text NOT NULL,
	`number` integer NOT NULL,
	`state` text NOT NULL,
	`creator_device` text NOT NULL,
	`expires_at` text NOT NULL,
	`expires_at_time` integer NOT NULL,
	`created_at` integer NOT NULL,
	`ended_at` integer,
	`claim_device` text,
	`claim_user_id` text,
	`claim_event_id` text,
	`released_at` integer
);
--> statement-breakpoint
CREATE INDEX `invitation_due` ON `invitation` (`expires_at_time`) WHERE state = 'pending';--> statement-breakpoint
CREATE INDEX `invitation_unreleased` ON `invitation` (`application_id`,`ended_at`) WHERE released_at IS NULL AND state IN ('revoked', 'expired');--> statement-breakpoint
CREATE TABLE `sealing_key` (
	`version` integer PRIMARY KEY NOT NULL,
	`public_key` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `signing_key` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`application_id` text NOT NULL,
	`kid` text NOT NULL,
	`public_key` text NOT NULL,
	`sealed` text NOT NULL,
	`sealing_version` integer NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`application_id`) REFERENCES `application`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `signing_key_application` ON `signing_key` (`application_id`);--> statement-breakpoint
CREATE INDEX `signing_key_sealing_version` ON `signing_key` (`sealing_version`);--> statement-breakpoint
CREATE TABLE `webhook_event` (
	`application_id` text NOT NULL,
	`id` text NOT NULL,
	`event` text NOT NULL,
	`payload` text NOT NULL,
	`state` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`due_at` integer NOT NULL,
	`last_status` integer,
	`last_outcome` text,
	`last_response` text,
	`last_milliseconds` integer,
	`created_at` integer NOT NULL,
	`delivered_at` integer,
	PRIMARY KEY(`application_id`, `id`)
);
--> statement-breakpoint
CREATE INDEX `webhook_event_due` ON `webhook_event` (`application_id`,`due_at`) WHERE state = 'pending';--> statement-breakpoint
CREATE INDEX `webhook_event_stopped` ON `webhook_event` (`application_id`,`state`,`id`) WHERE state IN ('exhausted', 'held');