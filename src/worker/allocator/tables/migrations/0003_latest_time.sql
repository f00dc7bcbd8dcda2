ALTER TABLE `entry` ADD `latest_at` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
UPDATE `entry` SET `latest_at` = `kept_at` WHERE `sequence` = (SELECT max(`sequence`) FROM `entry`);
