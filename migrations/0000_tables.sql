CREATE TABLE `application` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`first_number` integer NOT NULL,
	`last_number` integer NOT NULL,
	`require_secret` integer DEFAULT false NOT NULL,
	`reuse_after_seconds` integer DEFAULT 0 NOT NULL,
	`signature_lifetime_seconds` integer,
	`sealed_root_key` text NOT NULL,
	`sealing_version` integer NOT NULL,
	`webhook_url` text,
	`invitation_link` text,
	`webhook_held_at` integer,
	`events` text DEFAULT 'badge:created' NOT NULL,
	`status_list` integer DEFAULT false NOT NULL,
	`status_lifetime_seconds` integer DEFAULT 86400 NOT NULL,
	`require_proof` integer DEFAULT false NOT NULL,
	`bind_until` integer,
	`new_badges_per_hour` integer DEFAULT 10000,
	`user_issuer` text,
	`user_audience` text,
	`user_claim` text DEFAULT 'sub' NOT NULL,
	`user_observe` integer DEFAULT false NOT NULL,
	`created_at` integer NOT NULL,
	`disabled_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `application_first_number` ON `application` (`first_number`);--> statement-breakpoint
CREATE INDEX `application_sealing_version` ON `application` (`sealing_version`);--> statement-breakpoint
CREATE TABLE `application_head` (
	`application_id` text PRIMARY KEY NOT NULL,
	`sequence` integer NOT NULL,
	`entry` text NOT NULL,
	`range_segments` text NOT NULL,
	`last_ordinal` integer NOT NULL,
	`last_change` integer NOT NULL,
	`last_signing_key` integer NOT NULL,
	`epoch` text NOT NULL,
	`hour` integer NOT NULL,
	`hour_used` integer NOT NULL,
	`statistics` text NOT NULL,
	`past_days` text DEFAULT '{}' NOT NULL,
	`readable_from` integer DEFAULT 0 NOT NULL,
	`refused` text DEFAULT '[]' NOT NULL,
	`log_since` integer
);
--> statement-breakpoint
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
	`status_change` integer,
	`application_id` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `badge_user_device` ON `badge` (`application_id`,`device`,(key_thumbprint IS NOT NULL),`user_id`) WHERE ordinal IS NOT NULL AND superseded_at IS NULL;--> statement-breakpoint
CREATE INDEX `badge_device_login` ON `badge` (`application_id`,`device`,(key_thumbprint IS NOT NULL),`login_sequence`) WHERE ordinal IS NOT NULL AND superseded_at IS NULL AND login_sequence > 1;--> statement-breakpoint
CREATE INDEX `badge_device_key` ON `badge` (`application_id`,`device`,`key_thumbprint`,`login_sequence`) WHERE ordinal IS NOT NULL AND superseded_at IS NULL AND key_thumbprint IS NOT NULL;--> statement-breakpoint
CREATE INDEX `badge_page` ON `badge` (`application_id`,(ended_at IS NOT NULL),`ordinal`) WHERE ordinal IS NOT NULL;--> statement-breakpoint
CREATE INDEX `badge_user_page` ON `badge` (`application_id`,`user_id`,(ended_at IS NOT NULL),`ordinal`) WHERE ordinal IS NOT NULL;--> statement-breakpoint
CREATE INDEX `badge_change` ON `badge` (`application_id`,`change`) WHERE ordinal IS NOT NULL;--> statement-breakpoint
CREATE INDEX `badge_status` ON `badge` (`application_id`,(ordinal / 131072),`status_change`) WHERE status_change IS NOT NULL;--> statement-breakpoint
CREATE INDEX `badge_state` ON `badge` (`application_id`,(CASE WHEN ended_at IS NULL THEN state WHEN state = 'active' THEN 'expired' WHEN state = 'suspended' THEN 'expired' ELSE state END),`ordinal`) WHERE ordinal IS NOT NULL AND (state <> 'active' OR ended_at IS NOT NULL);--> statement-breakpoint
CREATE INDEX `badge_expiry` ON `badge` (`application_id`,`expires_at`) WHERE expires_at IS NOT NULL AND ended_at IS NULL;--> statement-breakpoint
CREATE INDEX `badge_status_expiry` ON `badge` (`application_id`,(ordinal / 131072),`expires_at`) WHERE expires_at IS NOT NULL AND ended_at IS NULL;--> statement-breakpoint
CREATE TABLE `blocked_user` (
	`user_id` text NOT NULL,
	`blocked_at` integer NOT NULL,
	`user_digest` text,
	`application_id` text NOT NULL,
	PRIMARY KEY(`application_id`, `user_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `blocked_user_page` ON `blocked_user` (`application_id`,`blocked_at`,`user_id`);--> statement-breakpoint
CREATE INDEX `blocked_user_digest` ON `blocked_user` (`application_id`,`user_digest`) WHERE user_digest IS NOT NULL;--> statement-breakpoint
CREATE TABLE `heartbeat` (
	`id` integer PRIMARY KEY NOT NULL,
	`sequence` integer NOT NULL,
	`ticked_at` integer NOT NULL,
	`untried_from` text DEFAULT '' NOT NULL
);
--> statement-breakpoint
CREATE TABLE `console_secret` (
	`application_id` text NOT NULL,
	`name` text NOT NULL,
	`id` text NOT NULL,
	`role` text DEFAULT 'operator' NOT NULL,
	`digest` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`application_id`, `name`),
	FOREIGN KEY (`application_id`) REFERENCES `application`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `deployment` (
	`id` integer PRIMARY KEY NOT NULL,
	`release` text NOT NULL,
	`commit` text,
	`deployed_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `door_secret` (
	`application_id` text NOT NULL,
	`name` text NOT NULL,
	`id` text NOT NULL,
	`digest` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`application_id`, `name`),
	FOREIGN KEY (`application_id`) REFERENCES `application`(`id`) ON UPDATE no action ON DELETE no action
) WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `door_secret_digest` ON `door_secret` (`application_id`,`digest`);--> statement-breakpoint
CREATE TABLE `freed_number` (
	`number` integer PRIMARY KEY NOT NULL,
	`freed_at` integer NOT NULL,
	`application_id` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `freed_number_reusable` ON `freed_number` (`application_id`,`freed_at`);--> statement-breakpoint
CREATE TABLE `history` (
	`application_id` text NOT NULL,
	`id` text NOT NULL,
	`at` integer NOT NULL,
	`action` text NOT NULL,
	`actor_kind` text NOT NULL,
	`actor_name` text,
	`badge` integer,
	`user_id` text,
	`request_id` text,
	`reason` text,
	`detail` text,
	PRIMARY KEY(`application_id`, `id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `history_badge` ON `history` (`application_id`,`badge`,`id`) WHERE badge IS NOT NULL;--> statement-breakpoint
CREATE INDEX `history_user` ON `history` (`application_id`,`user_id`,`id`) WHERE user_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX `history_actor` ON `history` (`application_id`,`actor_name`,`id`) WHERE actor_name IS NOT NULL;--> statement-breakpoint
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
	`claim_user_id` text,
	`application_id` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `invitation_page` ON `invitation` (`application_id`,`created_at`);--> statement-breakpoint
CREATE INDEX `invitation_state` ON `invitation` (`application_id`,`state`,`created_at`);--> statement-breakpoint
CREATE INDEX `invitation_visit` ON `invitation` (`application_id`,(((CASE WHEN "badge_expires_at_time" IS NULL THEN "expires_at_time" ELSE "badge_expires_at_time" END) - (CASE WHEN "badge_starts_at_time" IS NULL THEN "created_at" ELSE "badge_starts_at_time" END) > 86400000) + ((CASE WHEN "badge_expires_at_time" IS NULL THEN "expires_at_time" ELSE "badge_expires_at_time" END) - (CASE WHEN "badge_starts_at_time" IS NULL THEN "created_at" ELSE "badge_starts_at_time" END) > 604800000) + ((CASE WHEN "badge_expires_at_time" IS NULL THEN "expires_at_time" ELSE "badge_expires_at_time" END) - (CASE WHEN "badge_starts_at_time" IS NULL THEN "created_at" ELSE "badge_starts_at_time" END) > 2764800000)),(CASE WHEN "badge_starts_at_time" IS NULL THEN "created_at" ELSE "badge_starts_at_time" END));--> statement-breakpoint
CREATE INDEX `invitation_due` ON `invitation` (`application_id`,`expires_at_time`) WHERE state = 'pending';--> statement-breakpoint
CREATE INDEX `invitation_user` ON `invitation` (`application_id`,`user_id`) WHERE user_id IS NOT NULL;--> statement-breakpoint
CREATE TABLE `number_range` (
	`application_id` text PRIMARY KEY NOT NULL,
	`first_number` integer NOT NULL,
	`last_number` integer NOT NULL,
	`registered_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `observed_logins` (
	`application_id` text NOT NULL,
	`hour` integer NOT NULL,
	`with_token` integer NOT NULL,
	`without_token` integer NOT NULL,
	`with_wrong_token` integer NOT NULL,
	PRIMARY KEY(`application_id`, `hour`)
);
--> statement-breakpoint
CREATE TABLE `script_command` (
	`id` text PRIMARY KEY NOT NULL,
	`recipient` text NOT NULL,
	`command` text NOT NULL,
	`created_at` integer NOT NULL,
	`result` text
);
--> statement-breakpoint
CREATE INDEX `script_command_open` ON `script_command` (`recipient`,`created_at`) WHERE result IS NULL;--> statement-breakpoint
CREATE TABLE `sealing_key` (
	`version` integer PRIMARY KEY NOT NULL,
	`public_key` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `signing_key` (
	`id` integer PRIMARY KEY NOT NULL,
	`application_id` text NOT NULL,
	`kid` text NOT NULL,
	`public_key` text NOT NULL,
	`sealed` text NOT NULL,
	`sealing_version` integer NOT NULL,
	`created_at` integer NOT NULL,
	`signs_from` integer DEFAULT 0 NOT NULL,
	FOREIGN KEY (`application_id`) REFERENCES `application`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `signing_key_application` ON `signing_key` (`application_id`);--> statement-breakpoint
CREATE INDEX `signing_key_sealing_version` ON `signing_key` (`sealing_version`);--> statement-breakpoint
CREATE TABLE `status_list` (
	`application_id` text NOT NULL,
	`list` integer NOT NULL,
	`through` integer NOT NULL,
	`lst` text NOT NULL,
	PRIMARY KEY(`application_id`, `list`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `webhook_event` (
	`application_id` text NOT NULL,
	`id` text NOT NULL,
	`event` text NOT NULL,
	`payload` text NOT NULL,
	`state` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`due_at` integer,
	`lease_until` integer DEFAULT 0 NOT NULL,
	`last_status` integer,
	`last_outcome` text,
	`last_response` text,
	`last_milliseconds` integer,
	`created_at` integer NOT NULL,
	`delivered_at` integer,
	PRIMARY KEY(`application_id`, `id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `webhook_event_due` ON `webhook_event` (`application_id`,`due_at`) WHERE state = 'pending' AND due_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `webhook_event_stopped` ON `webhook_event` (`application_id`,`state`,`id`) WHERE state IN ('exhausted', 'held');
