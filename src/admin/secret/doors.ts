import { and, asc, eq, sql } from "drizzle-orm";
import { makeConsoleSecret } from "../../shared/credentials.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { MAX_DOOR_SECRETS } from "../../shared/limits/request-limits.ts";
import { application, doorSecret } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import { findApplication } from "../application/record.ts";
import { UserError } from "../command-line/errors.ts";
import { ADMIN } from "../command-line/shell.ts";
import { administrator, insertHistoryRow, newHistoryRow } from "../history/note.ts";
import { type Database, insertWhere } from "../platform/database.ts";
import type { AddedSecret, ShownSecret } from "./secrets.ts";

/** The secrets of doors (contract section 26). An application has up to `MAX_DOOR_SECRETS`, besides its other secrets. */

/** Sorted by name. */
export async function listDoorSecrets(database: Database, applicationId: ApplicationId): Promise<ShownSecret[]> {
  const rows = await database.run((orm) =>
    orm.select().from(doorSecret).where(eq(doorSecret.applicationId, applicationId)).orderBy(asc(doorSecret.name)),
  );
  return rows.map(({ id, name, createdAt }) => ({ secretId: id, role: "door", name, createdAt: isoTime(createdAt) }));
}

const isOfDoor = (applicationId: ApplicationId, name: string) =>
  and(eq(doorSecret.applicationId, applicationId), eq(doorSecret.name, name));

/**
 * Adds a secret for a door.
 *
 * @throws UserError when the name has one already, or the application has as many as it may have
 */
export async function addDoorSecret(
  database: Database,
  applicationId: ApplicationId,
  name: string,
  actor = administrator(),
): Promise<AddedSecret> {
  await findApplication(database, applicationId);
  const { row, secret } = await makeConsoleSecret();
  const ofApplication = sql`SELECT count(*) FROM ${doorSecret} WHERE ${doorSecret.applicationId} = ${applicationId}`;
  const existsCondition = sql`EXISTS (SELECT 1 FROM ${doorSecret}
    WHERE ${doorSecret.applicationId} = ${applicationId} AND ${doorSecret.id} = ${row.id})`;
  const insertCondition = sql`FROM ${application} WHERE ${application.id} = ${applicationId} AND (${ofApplication}) < ${MAX_DOOR_SECRETS}
    AND (${ofApplication} AND ${doorSecret.name} = ${name}) = 0 AND NOT ${existsCondition}`;
  const entry = { action: "secret:added", detail: { secretId: row.id, door: name } } as const;
  const historyRow = await newHistoryRow(database, applicationId, actor, entry);
  const added = { ...row, name, applicationId, createdAt: Date.now() };
  const [, , [holder]] = await database.run((orm) =>
    orm.batch([
      insertWhere(orm, doorSecret, added, insertCondition),
      insertHistoryRow(orm, historyRow, existsCondition),
      orm.select({ id: doorSecret.id }).from(doorSecret).where(isOfDoor(applicationId, name)),
    ]),
  );
  if (holder?.id === row.id) {
    return { applicationId, secretId: row.id, applicationSecret: secret, role: "door", name };
  }
  if (holder !== undefined) {
    throw new UserError(
      `Application ${applicationId} has a secret for the door "${name}" already: retire it first, or give another name.`,
    );
  }
  throw new UserError(
    `Application ${applicationId} has ${MAX_DOOR_SECRETS} secrets for doors, which is the most: retire one with ` +
      `${ADMIN} secret retire ${applicationId} --door NAME.`,
  );
}

/**
 * Retires a door's secret. It stops authenticating within half a minute.
 *
 * @returns the doors' secrets that are left
 * @throws UserError when there is none of that name
 */
export async function retireDoorSecret(
  database: Database,
  applicationId: ApplicationId,
  name: string,
  actor = administrator(),
) {
  await findApplication(database, applicationId);
  const [holder] = await database.run((orm) =>
    orm.select({ id: doorSecret.id }).from(doorSecret).where(isOfDoor(applicationId, name)),
  );
  if (holder === undefined) {
    throw new UserError(
      `Application ${applicationId} has no secret for the door "${name}": see ${ADMIN} secret list ${applicationId}.`,
    );
  }
  const { id: secretId } = holder;
  // By ID as well, so that a new secret that another administrator has added for this name meanwhile stays.
  const isSecret = and(isOfDoor(applicationId, name), eq(doorSecret.id, secretId));
  const entry = { action: "secret:retired", detail: { secretId, door: name } } as const;
  const historyRow = await newHistoryRow(database, applicationId, actor, entry);
  await database.run((orm) =>
    orm.batch([
      insertHistoryRow(orm, historyRow, sql`EXISTS (SELECT 1 FROM ${doorSecret} WHERE ${isSecret})`),
      orm.delete(doorSecret).where(isSecret),
    ]),
  );
  return { applicationId, secretId, secrets: await listDoorSecrets(database, applicationId) };
}
