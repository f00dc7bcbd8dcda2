import { type Column, getTableColumns, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { application, applicationSecret, consoleSecret, signingKey } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { DOOR_BY_DIGEST } from "./door-secrets.ts";
import { orm, type Placeholders, query, type Returning, type RowOf, statement } from "./statement.ts";

const { digest, name, role } = getTableColumns(consoleSecret);
const { applicationId: _, ...keyColumns } = getTableColumns(signingKey);

const FIELDS = {
  id: application.id,
  firstNumber: application.firstNumber,
  lastNumber: application.lastNumber,
  disabledAt: application.disabledAt,
  requireSecret: application.requireSecret,
  reuseAfterSeconds: application.reuseAfterSeconds,
  signatureLifetimeSeconds: application.signatureLifetimeSeconds,
  statusList: application.statusList,
  statusLifetimeSeconds: application.statusLifetimeSeconds,
  requireProof: application.requireProof,
  bindUntil: application.bindUntil,
  newBadgesPerHour: application.newBadgesPerHour,
  userIssuer: application.userIssuer,
  userAudience: application.userAudience,
  userClaim: application.userClaim,
  userObserve: application.userObserve,
  sealedRootKey: application.sealedRootKey,
  sealingVersion: application.sealingVersion,
  secrets: rowsOf({ digest: applicationSecret.digest }, applicationSecret.applicationId),
  consoleSecrets: rowsOf({ digest, name, role }, consoleSecret.applicationId),
  /** Oldest first. */
  signingKeys: rowsOf(keyColumns, signingKey.applicationId, signingKey.id),
};

const SELECT_APPLICATION = statement((p: Placeholders<{ id: ApplicationId }>) =>
  query(FIELDS, (fields) => sql`SELECT ${fields} FROM ${application} WHERE ${application.id} = ${p.id}`),
);

/** An application with its secrets and keys, by the names of src/shared/schema.ts. */
export type ApplicationRow = NonNullable<Awaited<ReturnType<typeof findApplication>>>;

/** All rows of another table that belong to the application, as one value. */
function rowsOf<Columns extends Record<string, Column>>(columns: Columns, owner: Column, order?: Column) {
  const members = Object.entries(columns).map(([field, column]) => sql`${field}, ${column}`);
  const sorted = order && sql` ORDER BY ${order}`;
  return sql`(SELECT json_group_array(json_object(${sql.join(members, sql`, `)})${sorted})
    FROM ${owner.table} WHERE ${owner} = ${application.id})`.mapWith((json): RowOf<Returning<Columns>>[] =>
    JSON.parse(String(json)),
  );
}

/** One round trip. */
export async function findApplication(db: Database, id: ApplicationId) {
  const [row] = await db.all(SELECT_APPLICATION, { id });
  return row;
}

/** An application, and its door whose secret has this digest. One round trip. @param digest base64url of SHA-256 */
export async function findApplicationAndDoor(db: Database, id: ApplicationId, digest: string) {
  const [applications, doors] = await db.run((d1) =>
    d1.batch([SELECT_APPLICATION.bind(d1, { id }), DOOR_BY_DIGEST.bind(d1, { applicationId: id, digest })]),
  );
  return { application: SELECT_APPLICATION.rows(applications)[0], door: DOOR_BY_DIGEST.rows(doors)[0] };
}

const SELECT_IDS = statement((p: Placeholders<{ limit: number }>) =>
  orm.select({ id: application.id }).from(application).limit(p.limit),
);

/** The IDs of the home's applications. One round trip. */
export async function listApplicationIds(db: Database, limit: number): Promise<ApplicationId[]> {
  return (await db.all(SELECT_IDS, { limit })).map(({ id }) => id);
}
