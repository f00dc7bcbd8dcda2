CREATE TABLE `deployment` (
	`id` integer PRIMARY KEY NOT NULL,
	`release` text NOT NULL,
	`commit` text,
	`deployed_at` integer NOT NULL
);
