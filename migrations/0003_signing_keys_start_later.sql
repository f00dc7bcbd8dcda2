ALTER TABLE `signing_key` ADD `signs_from` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
UPDATE `signing_key` SET `signs_from` = min(`created_at`, unixepoch() * 1000);