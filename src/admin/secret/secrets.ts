import { asc, eq, type SQL, sql } from "drizzle-orm";
import type { Actor } from "../../shared/actor.ts";
import { makeConsoleSecret, makeSecret } from "../../shared/credentials.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { MAX_CONSOLE_SECRETS } from "../../shared/limits/request-limits.ts";
import type { Role } from "../../shared/roles.ts";
import { application, applicationSecret, consoleSecret, sealingKey } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import { findApplication } from "../application/record.ts";
import { UserError } from "../command-line/errors.ts";
import { ADMIN } from "../command-line/shell.ts";
import { administrator, insertHistoryRow, newHistoryRow } from "../history/note.ts";
import { type Database, insertWhere, type NewRow, type Orm } from "../platform/database.ts";
import { newestSealer } from "../sealing-key/newest.ts";

/** The secrets of an application: the two of its server, and those of people. For those of doors, see doors.ts. */

/** A secret as the commands print it, without its value. */
export interface ShownSecret {
  secretId: string;
  /** Which of the server's two it is; a person's role; or `door`. */
  role: "current" | "added" | "previous" | Role | "door";
  /** The person's or door's name; the server's secrets have none. */
  name?: string;
  createdAt: string | null;
}

/** The server's, oldest first, then people's, by name. */
export async function listSecrets(database: Database, applicationId: ApplicationId): Promise<ShownSecret[]> {
  await findApplication(database, applicationId);
  return toSecretsView(await database.run((orm) => orm.batch(selectSecrets(orm, applicationId))));
}

/** The statements whose results `toSecretsView` takes. */
export const selectSecrets = (orm: Orm, applicationId: ApplicationId) =>
  [
    orm
      .select()
      .from(applicationSecret)
      .where(eq(applicationSecret.applicationId, applicationId))
      .orderBy(asc(applicationSecret.createdAt)),
    orm
      .select()
      .from(consoleSecret)
      .where(eq(consoleSecret.applicationId, applicationId))
      .orderBy(asc(consoleSecret.name)),
  ] as const;

type Secrets = readonly [
  ofServer: (typeof applicationSecret.$inferSelect)[],
  ofPeople: (typeof consoleSecret.$inferSelect)[],
];

export const toSecretsView = ([ofServer, ofPeople]: Secrets): ShownSecret[] => [
  ...ofServer.map(({ id, role, createdAt }) => ({ secretId: id, role, createdAt: isoTime(createdAt) })),
  ...ofPeople.map(({ id, role, name, createdAt }) => ({ secretId: id, role, name, createdAt: isoTime(createdAt) })),
];

export const readServerSecrets = async (database: Database, applicationId: ApplicationId): Promise<ShownSecret[]> =>
  (await listSecrets(database, applicationId)).filter(({ name }) => name === undefined);

/** What `secret add` prints. The secret is shown only here. */
export interface AddedSecret {
  applicationId: ApplicationId;
  secretId: string;
  applicationSecret: string;
  role: "added" | Role | "door";
  name?: string;
}

/**
 * Adds a second secret. Both authenticate from now on; the `Signature` of webhooks stays with the current one until
 * `promoteSecret`.
 *
 * @throws UserError when there are two already
 */
export async function addSecret(
  database: Database,
  applicationId: ApplicationId,
  actor = administrator(),
): Promise<AddedSecret> {
  await findApplication(database, applicationId);
  const { row, secret } = await makeSecret(await newestSealer(database), applicationId);
  const insertCondition = sql`(SELECT count(*) FROM ${applicationSecret} WHERE ${applicationSecret.applicationId} = ${applicationId}) < 2
    AND EXISTS (SELECT 1 FROM ${sealingKey} WHERE ${sealingKey.version} = ${row.sealingVersion})`;
  const added = { ...row, role: "added", applicationId, createdAt: Date.now() } as const;
  const [secrets] = await insertSecret(database, applicationSecret, added, insertCondition, actor, {});
  if (secrets.some(({ id }) => id === row.id)) {
    return { applicationId, secretId: row.id, applicationSecret: secret, role: "added" };
  }
  if (secrets.length < 2) throw new UserError("The sealing key was replaced meanwhile: run the command again.");
  const isFull = `Application ${applicationId} has two secrets already: finish changing it first with ${ADMIN} secret`;
  const other = secrets.find(({ role }) => role === "added");
  if (other === undefined) throw new UserError(`${isFull} retire ${applicationId}.`);
  throw new UserError(
    `${isFull} promote ${applicationId}, or, if nobody has the added one, take it back with ${ADMIN} secret retire ${applicationId} --secret ${other.id}.`,
  );
}

/**
 * Adds a secret for a person, who signs in to `/console` with it.
 *
 * @throws UserError when the name has one already, or the application has as many as it may have
 */
export async function addConsoleSecret(
  database: Database,
  applicationId: ApplicationId,
  holder: { name: string; role: Role },
  actor = administrator(),
): Promise<AddedSecret> {
  const { name } = holder;
  await findApplication(database, applicationId);
  const { row, secret } = await makeConsoleSecret();
  const ofApplication = sql`SELECT count(*) FROM ${consoleSecret} WHERE ${consoleSecret.applicationId} = ${applicationId}`;
  const insertCondition = sql`(${ofApplication}) < ${MAX_CONSOLE_SECRETS}
    AND (${ofApplication} AND ${consoleSecret.name} = ${name}) = 0`;
  const added = { ...row, ...holder, applicationId, createdAt: Date.now() };
  const [, secrets] = await insertSecret(database, consoleSecret, added, insertCondition, actor, holder);
  if (secrets.some(({ id }) => id === row.id)) {
    return { applicationId, secretId: row.id, applicationSecret: secret, ...holder };
  }
  if (secrets.some((other) => other.name === name)) {
    throw new UserError(
      `Application ${applicationId} has a secret for "${name}" already: retire it first, or give another name.`,
    );
  }
  throw new UserError(
    `Application ${applicationId} has ${MAX_CONSOLE_SECRETS} secrets for people, which is the most: retire one with ` +
      `${ADMIN} secret retire ${applicationId} --console NAME.`,
  );
}

/** Inserts a secret if `insertCondition` holds. A repeat after a lost response inserts none. @returns all secrets */
async function insertSecret<Table extends typeof applicationSecret | typeof consoleSecret>(
  database: Database,
  table: Table,
  row: NewRow<Table> & { id: string; applicationId: ApplicationId },
  insertCondition: SQL,
  actor: Actor,
  detail: object,
): Promise<Secrets> {
  const { id, applicationId } = row;
  const existsCondition = sql`EXISTS (SELECT 1 FROM ${table} WHERE ${table.applicationId} = ${applicationId} AND ${table.id} = ${id})`;
  const isNew = sql`FROM ${application} WHERE ${application.id} = ${applicationId} AND ${insertCondition} AND NOT ${existsCondition}`;
  const entry = { action: "secret:added", detail: { secretId: id, ...detail } } as const;
  const historyRow = await newHistoryRow(database, applicationId, actor, entry);
  const [, , ...secrets] = await database.run((orm) =>
    orm.batch([
      insertWhere(orm, table, row, isNew),
      insertHistoryRow(orm, historyRow, existsCondition),
      ...selectSecrets(orm, applicationId),
    ]),
  );
  return secrets;
}
