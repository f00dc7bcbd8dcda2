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
CREATE TABLE `statistics` (
	`application_id` text PRIMARY KEY NOT NULL,
	`counts` text,
	`counted_at` integer,
	`progress` text,
	`claim` text,
	`claimed_until` integer DEFAULT 0 NOT NULL,
	`retry_at` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE `status_list` (
	`application_id` text NOT NULL,
	`list` integer NOT NULL,
	`through` integer NOT NULL,
	`lst` text NOT NULL,
	PRIMARY KEY(`application_id`, `list`)
) WITHOUT ROWID;
--> statement-breakpoint
DROP INDEX `badge_status`;--> statement-breakpoint
DROP INDEX `badge_expiry`;--> statement-breakpoint
ALTER TABLE `badge` ADD `name` text;--> statement-breakpoint
ALTER TABLE `badge` ADD `starts_at` integer;--> statement-breakpoint
ALTER TABLE `badge` ADD `status_change` integer;--> statement-breakpoint
CREATE INDEX `badge_state` ON `badge` (`application_id`,(CASE WHEN ended_at IS NULL THEN state WHEN state = 'active' THEN 'expired' WHEN state = 'suspended' THEN 'expired' ELSE state END),`position`) WHERE position IS NOT NULL AND (state <> 'active' OR ended_at IS NOT NULL);--> statement-breakpoint
CREATE INDEX `badge_status` ON `badge` (`application_id`,(position / 131072),`status_change`) WHERE status_change IS NOT NULL;--> statement-breakpoint
CREATE INDEX `badge_expiry` ON `badge` (`application_id`,`expires_at`) WHERE expires_at IS NOT NULL AND ended_at IS NULL;--> statement-breakpoint
DROP INDEX `invitation_due`;--> statement-breakpoint
ALTER TABLE `invitation` ADD `badge_starts_at` text;--> statement-breakpoint
ALTER TABLE `invitation` ADD `badge_starts_at_time` integer;--> statement-breakpoint
ALTER TABLE `invitation` ADD `name` text;--> statement-breakpoint
ALTER TABLE `invitation` ADD `user_id` text;--> statement-breakpoint
CREATE INDEX `invitation_state` ON `invitation` (`application_id`,`state`,`created_at`);--> statement-breakpoint
CREATE INDEX `invitation_due` ON `invitation` (`application_id`,`expires_at_time`) WHERE state = 'pending';--> statement-breakpoint
CREATE INDEX `blocked_user_page` ON `blocked_user` (`application_id`,`blocked_at`,`user_id`);--> statement-breakpoint
UPDATE `badge` SET `status_change` = coalesce(`change`, `position`) WHERE `position` IS NOT NULL AND (`state` <> 'active' OR `ended_at` IS NOT NULL);
