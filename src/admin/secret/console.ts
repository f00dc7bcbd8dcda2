import { and, eq, exists, sql } from "drizzle-orm";
import type { Role } from "../../shared/actor.ts";
import { makeConsoleSecret, type NewConsoleSecret } from "../../shared/credentials.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { MAX_CONSOLE_SECRETS } from "../../shared/limits.ts";
import { application, consoleSecret } from "../../shared/schema.ts";
import { findApplication } from "../application/record.ts";
import { UserError } from "../command-line/errors.ts";
import { ADMIN } from "../command-line/shell.ts";
import { administrator } from "../history/administrator.ts";
import { insertNote, newNote } from "../history/note.ts";
import { type Database, insertWhere, type Orm } from "../platform/database.ts";
import { listSecrets, type ShownSecret, selectSecrets, shownSecrets } from "./list.ts";

/** What `secret add --console` prints. The secret is shown only here. */
export interface AddedConsoleSecret {
  applicationId: ApplicationId;
  secretId: string;
  applicationSecret: string;
  role: Role;
  name: string;
}

/** Whose secret it is, and what it may do. */
interface Holder {
  name: string;
  role: Role;
}

/**
 * Adds a secret for a person, who signs in to `/console` with it.
 *
 * @throws UserError when the name has one already, or the application has as many as it may have
 */
export async function addConsoleSecret(
  database: Database,
  applicationId: ApplicationId,
  holder: Holder,
  actor = administrator(),
): Promise<AddedConsoleSecret> {
  const { name } = holder;
  await findApplication(database, applicationId);
  const { row, secret } = await makeConsoleSecret();
  const detail = { secretId: row.id, ...holder };
  const note = await newNote(database, applicationId, actor, { action: "secret:added", detail });
  const [, , , secrets] = await database.run((orm) =>
    orm.batch([
      insertConsoleSecret(orm, applicationId, holder, row),
      insertNote(orm, note, exists(orm.select().from(consoleSecret).where(eq(consoleSecret.id, row.id)))),
      ...selectSecrets(orm, applicationId),
    ]),
  );
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

/** Inserts nothing where that would break a rule. A repeat after a lost response finds its own row and inserts nothing. */
function insertConsoleSecret(
  orm: Orm,
  applicationId: ApplicationId,
  { name, role }: Holder,
  row: NewConsoleSecret["row"],
) {
  const ofApplication = sql`SELECT count(*) FROM ${consoleSecret} WHERE application_id = ${applicationId}`;
  return insertWhere(
    orm,
    consoleSecret,
    { ...row, applicationId, name, role, createdAt: Date.now() },
    sql`WHERE EXISTS (SELECT 1 FROM ${application} WHERE id = ${applicationId})
      AND (${ofApplication}) < ${MAX_CONSOLE_SECRETS} AND (${ofApplication} AND name = ${name}) = 0`,
  );
}

/**
 * Ends the secret of a person. It stops authenticating within half a minute.
 *
 * @throws UserError when nobody of that name has one
 */
export async function retireConsoleSecret(
  database: Database,
  applicationId: ApplicationId,
  name: string,
  actor = administrator(),
): Promise<{ applicationId: ApplicationId; secretId: string; secrets: ShownSecret[] }> {
  const secrets = await listSecrets(database, applicationId);
  const secret = secrets.find((each) => each.name === name);
  if (secret === undefined) {
    throw new UserError(
      `Application ${applicationId} has no secret for "${name}": see ${ADMIN} secret list ${applicationId}.`,
    );
  }
  const { secretId } = secret;
  // By ID as well: another administrator may have given the name a new secret meanwhile, which stays.
  const isSecret = and(
    eq(consoleSecret.applicationId, applicationId),
    eq(consoleSecret.name, name),
    eq(consoleSecret.id, secretId),
  );
  const note = await newNote(database, applicationId, actor, { action: "secret:retired", detail: { secretId, name } });
  const [, , ...rows] = await database.run((orm) =>
    orm.batch([
      insertNote(orm, note, exists(orm.select().from(consoleSecret).where(isSecret))),
      orm.delete(consoleSecret).where(isSecret),
      ...selectSecrets(orm, applicationId),
    ]),
  );
  return { applicationId, secretId, secrets: shownSecrets(rows) };
}
