CREATE TABLE `observed_logins` (
	`application_id` text NOT NULL,
	`hour` integer NOT NULL,
	`with_token` integer NOT NULL,
	`without_token` integer NOT NULL,
	`with_wrong_token` integer NOT NULL,
	PRIMARY KEY(`application_id`, `hour`)
);
--> statement-breakpoint
ALTER TABLE `application` ADD `user_issuer` text;--> statement-breakpoint
ALTER TABLE `application` ADD `user_audience` text;--> statement-breakpoint
ALTER TABLE `application` ADD `user_claim` text DEFAULT 'sub' NOT NULL;--> statement-breakpoint
ALTER TABLE `application` ADD `user_observe` integer DEFAULT false NOT NULL;