DROP INDEX `badge_user_device`;--> statement-breakpoint
DROP INDEX `badge_device_turn`;--> statement-breakpoint
ALTER TABLE `badge` ADD `key_thumbprint` text;--> statement-breakpoint
ALTER TABLE `badge` ADD `rebind_until` integer;--> statement-breakpoint
CREATE INDEX `badge_device_key` ON `badge` (`application_id`,`device`,`key_thumbprint`,`turn`) WHERE position IS NOT NULL AND retired_at IS NULL AND key_thumbprint IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `badge_user_device` ON `badge` (`application_id`,`device`,(key_thumbprint IS NOT NULL),`user_id`) WHERE position IS NOT NULL AND retired_at IS NULL;--> statement-breakpoint
CREATE INDEX `badge_device_turn` ON `badge` (`application_id`,`device`,(key_thumbprint IS NOT NULL),`turn`) WHERE position IS NOT NULL AND retired_at IS NULL AND turn > 1;--> statement-breakpoint
ALTER TABLE `application` ADD `require_proof` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `application` ADD `bind_until` integer;