import { and, eq, gt, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { doorSecret } from "../../shared/schema.ts";
import { SCANNED, type ScannedPage, scanPage, scanStatements } from "./bounded-scan.ts";
import type { Database } from "./database.ts";
import { orm, type Placeholders, statement } from "./statement.ts";

/** A door with a secret. `createdAt` is the secret's creation in milliseconds. */
type DoorRow = Pick<typeof doorSecret.$inferSelect, "id" | "name" | "createdAt">;

/** The door whose secret has this digest. */
export const DOOR_BY_DIGEST = statement((p: Placeholders<{ applicationId: ApplicationId; digest: string }>) =>
  orm
    .select({ id: doorSecret.id, name: doorSecret.name })
    .from(doorSecret)
    .where(and(eq(doorSecret.applicationId, p.applicationId), eq(doorSecret.digest, p.digest))),
);

/** The door whose secret has this digest. One round trip. @param digest base64url of SHA-256 */
export async function findDoorByDigest(
  db: Database,
  applicationId: ApplicationId,
  digest: string,
): Promise<Pick<DoorRow, "id" | "name"> | undefined> {
  const [row] = await db.all(DOOR_BY_DIGEST, { applicationId, digest });
  return row;
}

const SELECT_IDS = statement((p: Placeholders<{ applicationId: ApplicationId }>) =>
  orm.select({ id: doorSecret.id }).from(doorSecret).where(eq(doorSecret.applicationId, p.applicationId)),
);

/** The IDs of all doors' secrets of an application. One round trip. */
export async function listDoorIds(db: Database, applicationId: ApplicationId): Promise<Set<string>> {
  return new Set((await db.all(SELECT_IDS, { applicationId })).map(({ id }) => id));
}

const scanned = alias(doorSecret, SCANNED);

const PAGE = scanStatements((p: Placeholders<{ applicationId: ApplicationId; after: string }>) => ({
  table: doorSecret,
  ranges: [and(eq(doorSecret.applicationId, p.applicationId), gt(doorSecret.name, p.after))],
  order: sql.identifier(doorSecret.name.name).getSQL(),
  fields: { id: scanned.id, name: scanned.name, createdAt: scanned.createdAt },
}));

/** The doors that have a secret, by name. One round trip. @param page `after`: the last name of the previous page */
export function listDoors(
  db: Database,
  applicationId: ApplicationId,
  { after, perPage }: { after: string | null; perPage: number },
): Promise<ScannedPage<DoorRow>> {
  return scanPage(db, PAGE, { applicationId, after: after ?? "" }, perPage);
}
