import { and, eq, gt, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { consoleSecret } from "../../shared/schema.ts";
import { SCANNED, type ScannedPage, scanPage, scanStatements } from "./bounded-scan.ts";
import type { Database } from "./database.ts";
import type { Placeholders } from "./statement.ts";

/** A person with a console secret. `createdAt` is the secret's creation in milliseconds. */
export type ConsolePerson = Pick<typeof consoleSecret.$inferSelect, "name" | "role" | "createdAt">;

const scanned = alias(consoleSecret, SCANNED);

const PAGE = scanStatements((p: Placeholders<{ applicationId: ApplicationId; after: string }>) => ({
  table: consoleSecret,
  ranges: [and(eq(consoleSecret.applicationId, p.applicationId), gt(consoleSecret.name, p.after))],
  order: sql.identifier(consoleSecret.name.name).getSQL(),
  fields: { name: scanned.name, role: scanned.role, createdAt: scanned.createdAt },
}));

/**
 * The people with a console secret of the application, by name. One round trip.
 *
 * @param page `after`: the last name of the previous page
 */
export function listConsolePeople(
  db: Database,
  applicationId: ApplicationId,
  { after, perPage }: { after: string | null; perPage: number },
): Promise<ScannedPage<ConsolePerson>> {
  return scanPage(db, PAGE, { applicationId, after: after ?? "" }, perPage);
}
