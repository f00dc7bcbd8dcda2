CREATE TABLE `reconciliation` (
	`application_id` text PRIMARY KEY NOT NULL,
	`restored` text NOT NULL,
	`requested_at` integer NOT NULL,
	`step` text NOT NULL,
	`through` integer NOT NULL,
	`checked` integer DEFAULT 0 NOT NULL,
	`changed` integer DEFAULT 0 NOT NULL,
	`finished_at` integer
);
--> statement-breakpoint
CREATE INDEX `reconciliation_open` ON `reconciliation` (`requested_at`) WHERE finished_at IS NULL;