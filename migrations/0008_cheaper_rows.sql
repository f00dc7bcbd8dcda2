-- The outbox becomes WITHOUT ROWID, so that an event is one row less; SQLite can do that only by a new table.
CREATE TABLE `webhook_event_next` (
	`application_id` text NOT NULL,
	`id` text NOT NULL,
	`event` text NOT NULL,
	`payload` text NOT NULL,
	`state` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`due_at` integer NOT NULL,
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
INSERT INTO `webhook_event_next` (`application_id`, `id`, `event`, `payload`, `state`, `attempts`, `due_at`,
	`last_status`, `last_outcome`, `last_response`, `last_milliseconds`, `created_at`, `delivered_at`)
SELECT `application_id`, `id`, `event`, `payload`, `state`, `attempts`, `due_at`,
	`last_status`, `last_outcome`, `last_response`, `last_milliseconds`, `created_at`, `delivered_at`
FROM `webhook_event` ORDER BY `application_id`, `id`;
--> statement-breakpoint
DROP TABLE `webhook_event`;
--> statement-breakpoint
ALTER TABLE `webhook_event_next` RENAME TO `webhook_event`;
--> statement-breakpoint
CREATE INDEX `webhook_event_due` ON `webhook_event` (`application_id`,`due_at`) WHERE state = 'pending';
--> statement-breakpoint
CREATE INDEX `webhook_event_stopped` ON `webhook_event` (`application_id`,`state`,`id`) WHERE state IN ('exhausted', 'held');
