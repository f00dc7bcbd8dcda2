CREATE TABLE `console_secret` (
	`application_id` text NOT NULL,
	`name` text NOT NULL,
	`id` text NOT NULL,
	`digest` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`application_id`, `name`),
	FOREIGN KEY (`application_id`) REFERENCES `application`(`id`) ON UPDATE no action ON DELETE no action
);
