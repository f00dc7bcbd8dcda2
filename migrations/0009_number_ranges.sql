CREATE TABLE `number_range` (
	`application_id` text PRIMARY KEY NOT NULL,
	`first_number` integer NOT NULL,
	`last_number` integer NOT NULL,
	`registered_at` integer NOT NULL
);
--> statement-breakpoint
INSERT INTO `number_range` SELECT `id`, `first_number`, `last_number`, `created_at` FROM `application`;
