CREATE TABLE `used_key` (
	`id` integer PRIMARY KEY NOT NULL,
	`key` text NOT NULL
);
