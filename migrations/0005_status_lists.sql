ALTER TABLE `application` ADD `status_list` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `application` ADD `status_lifetime_seconds` integer DEFAULT 86400 NOT NULL;--> statement-breakpoint
CREATE INDEX `badge_status` ON `badge` (`application_id`,`position`,`state`,`ended_at`,`expires_at`) WHERE position IS NOT NULL AND (state <> 'active' OR ended_at IS NOT NULL);