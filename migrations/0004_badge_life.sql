CREATE TABLE `blocked_user` (
	`application_id` text NOT NULL,
	`user_id` text NOT NULL,
	`blocked_at` integer NOT NULL,
	`is_revoking` integer NOT NULL,
	PRIMARY KEY(`application_id`, `user_id`)
);
--> statement-breakpoint
CREATE INDEX `blocked_user_revoking` ON `blocked_user` (`blocked_at`) WHERE is_revoking = 1;--> statement-breakpoint
CREATE TABLE `clock` (
	`id` integer PRIMARY KEY NOT NULL,
	`sequence` integer NOT NULL,
	`ticked_at` integer NOT NULL
);
--> statement-breakpoint
DROP INDEX `badge_user_device`;--> statement-breakpoint
DROP INDEX `badge_device_turn`;--> statement-breakpoint
DROP INDEX `badge_page`;--> statement-breakpoint
DROP INDEX `badge_user_page`;--> statement-breakpoint
ALTER TABLE `badge` ADD `state` text DEFAULT 'active' NOT NULL;--> statement-breakpoint
ALTER TABLE `badge` ADD `expires_at` integer;--> statement-breakpoint
ALTER TABLE `badge` ADD `ended_at` integer;--> statement-breakpoint
ALTER TABLE `badge` ADD `change` integer;--> statement-breakpoint
ALTER TABLE `badge` ADD `changed_at` integer;--> statement-breakpoint
CREATE INDEX `badge_change` ON `badge` (`application_id`,(CASE WHEN change IS NULL THEN position ELSE change END)) WHERE position IS NOT NULL;--> statement-breakpoint
CREATE INDEX `badge_expiry` ON `badge` (`expires_at`) WHERE expires_at IS NOT NULL AND ended_at IS NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `badge_user_device` ON `badge` (`application_id`,`device`,`user_id`) WHERE position IS NOT NULL AND retired_at IS NULL;--> statement-breakpoint
CREATE INDEX `badge_device_turn` ON `badge` (`application_id`,`device`,`turn`) WHERE position IS NOT NULL AND retired_at IS NULL AND turn > 1;--> statement-breakpoint
CREATE INDEX `badge_page` ON `badge` (`application_id`,(ended_at IS NOT NULL),`position`) WHERE position IS NOT NULL;--> statement-breakpoint
CREATE INDEX `badge_user_page` ON `badge` (`application_id`,`user_id`,(ended_at IS NOT NULL),`position`) WHERE position IS NOT NULL;--> statement-breakpoint
ALTER TABLE `application` ADD `events` text DEFAULT 'badge:created' NOT NULL;--> statement-breakpoint
ALTER TABLE `application` ADD `feed_epoch` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `invitation` ADD `with_secret` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `invitation` ADD `is_repeatable` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `invitation` ADD `badge_expires_at` text;--> statement-breakpoint
ALTER TABLE `invitation` ADD `badge_expires_at_time` integer;--> statement-breakpoint
CREATE INDEX `invitation_page` ON `invitation` (`application_id`,`created_at`);
--> statement-breakpoint
UPDATE `application` SET `feed_epoch` = lower(hex(randomblob(16)));--> statement-breakpoint
-- Release 1.0 took a replaced badge's position away; it gets one after the application's last.
UPDATE `badge` SET `state` = 'replaced', `ended_at` = `retired_at`, `position` = `replaced`.`position`
FROM (
	SELECT `retired`.`number` AS `number`,
		`last`.`position` + row_number() OVER (PARTITION BY `retired`.`application_id` ORDER BY `retired`.`retired_at`, `retired`.`number`) AS `position`
	FROM `badge` AS `retired`
	JOIN (SELECT `application_id`, coalesce(max(`position`), 0) AS `position` FROM `badge` GROUP BY `application_id`) AS `last`
		ON `last`.`application_id` = `retired`.`application_id`
	WHERE `retired`.`retired_at` IS NOT NULL AND `retired`.`position` IS NULL
) AS `replaced`
WHERE `badge`.`number` = `replaced`.`number`;
