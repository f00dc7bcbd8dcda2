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
);
--> statement-breakpoint
CREATE INDEX `history_badge` ON `history` (`application_id`,`badge`,`id`) WHERE badge IS NOT NULL;--> statement-breakpoint
CREATE INDEX `history_user` ON `history` (`application_id`,`user_id`,`id`) WHERE user_id IS NOT NULL;--> statement-breakpoint
ALTER TABLE `application` ADD `invitation_link` text;--> statement-breakpoint
ALTER TABLE `console_secret` ADD `role` text DEFAULT 'operator' NOT NULL;