import { and, eq, exists, ne, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { Actor } from "../../shared/actor.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { applicationSecret, consoleSecret } from "../../shared/schema.ts";
import { UserError } from "../command-line/errors.ts";
import { ADMIN } from "../command-line/shell.ts";
import { administrator, insertHistoryRow, newHistoryRow } from "../history/note.ts";
import type { Database } from "../platform/database.ts";
import { listSecrets, readServerSecrets, type ShownSecret, selectSecrets, toSecretsView } from "./secrets.ts";

/**
 * Makes the added secret the current one, which signs webhooks. The other one stays valid as the previous one.
 *
 * @throws UserError when none was added, or when it is retired meanwhile
 */
export async function promoteSecret(
  database: Database,
  applicationId: ApplicationId,
  actor = administrator(),
): Promise<ShownSecret[]> {
  const added = (await readServerSecrets(database, applicationId)).find(({ role }) => role === "added");
  if (added === undefined) {
    throw new UserError(`There is no added secret to promote: run ${ADMIN} secret add ${applicationId} first.`);
  }
  const { secretId } = added;
  const historyRow = await newHistoryRow(database, applicationId, actor, {
    action: "secret:promoted",
    detail: { secretId },
  });
  const { id, role } = applicationSecret;
  const [, , , ...rows] = await database.run((orm) => {
    const candidate = alias(applicationSecret, "candidate");
    const isAdded = and(eq(candidate.id, secretId), eq(candidate.role, "added"));
    const stillAdded = exists(orm.select().from(candidate).where(isAdded));
    const isCurrent = and(eq(applicationSecret.applicationId, applicationId), eq(role, "current"));
    return orm.batch([
      insertHistoryRow(orm, historyRow, stillAdded),
      orm.update(applicationSecret).set({ role: "previous" }).where(and(isCurrent, stillAdded)),
      orm
        .update(applicationSecret)
        .set({ role: "current" })
        .where(and(eq(id, secretId), eq(role, "added"))),
      ...selectSecrets(orm, applicationId),
    ]);
  });
  const secrets = toSecretsView(rows);
  if (secrets.some((each) => each.secretId === secretId && each.role === "current")) return secrets;
  throw new UserError(`${secretId} was retired meanwhile: see ${ADMIN} secret list ${applicationId}.`);
}

/**
 * Retires the previous secret, or the named one unless it is current. It stops authenticating within half a minute.
 *
 * @throws UserError when there is no such secret, or when it is the current one or becomes it meanwhile
 */
export async function retireSecret(
  database: Database,
  applicationId: ApplicationId,
  wanted: string | undefined,
  actor = administrator(),
) {
  const secretId = chooseRetired(applicationId, await readServerSecrets(database, applicationId), wanted);
  const isSecret = and(eq(applicationSecret.id, secretId), ne(applicationSecret.role, "current"));
  const secrets = await deleteSecret(database, applicationId, applicationSecret, isSecret, actor, { secretId });
  // Not the number of deleted rows: a repeat after a lost response deletes none.
  if (!secrets.some((each) => each.secretId === secretId)) return { applicationId, secretId, secrets };
  throw new UserError(
    `${secretId} is not retired: it was promoted meanwhile, see ${ADMIN} secret list ${applicationId}.`,
  );
}

function chooseRetired(applicationId: ApplicationId, secrets: ShownSecret[], wanted: string | undefined): string {
  const named = secrets.find(({ secretId }) => secretId === wanted);
  if (wanted !== undefined && named === undefined) throw noSecret(applicationId, wanted);
  const secret = named ?? secrets.find(({ role }) => role === "previous");
  if (secret === undefined) {
    const added = secrets.some(({ role }) => role === "added");
    const step = added ? `run ${ADMIN} secret promote ${applicationId} first` : "there is only the current one";
    throw new UserError(`Application ${applicationId} has no previous secret to retire: ${step}.`);
  }
  if (secret.role !== "current") return secret.secretId;
  throw new UserError(
    `${secret.secretId} is the current secret: add another with ${ADMIN} secret add ${applicationId} and promote it.`,
  );
}

const noSecret = (applicationId: ApplicationId, which: string): UserError =>
  new UserError(`Application ${applicationId} has no secret ${which}: see ${ADMIN} secret list ${applicationId}.`);

/**
 * Retires a person's secret. It stops authenticating within half a minute.
 *
 * @throws UserError when there is none of that name
 */
export async function retireConsoleSecret(
  database: Database,
  applicationId: ApplicationId,
  name: string,
  actor = administrator(),
) {
  const secret = (await listSecrets(database, applicationId)).find((each) => each.name === name);
  if (secret === undefined) throw noSecret(applicationId, `for "${name}"`);
  const { secretId } = secret;
  const ofName = and(eq(consoleSecret.applicationId, applicationId), eq(consoleSecret.name, name));
  // By ID as well, so that a new secret that another administrator has added for this name meanwhile stays.
  const isSecret = and(ofName, eq(consoleSecret.id, secretId));
  const detail = { secretId, name };
  return {
    applicationId,
    secretId,
    secrets: await deleteSecret(database, applicationId, consoleSecret, isSecret, actor, detail),
  };
}

/** @returns the secrets that are left */
async function deleteSecret(
  database: Database,
  applicationId: ApplicationId,
  table: typeof applicationSecret | typeof consoleSecret,
  isSecret: SQL | undefined,
  actor: Actor,
  detail: { secretId: string; name?: string },
): Promise<ShownSecret[]> {
  const historyRow = await newHistoryRow(database, applicationId, actor, { action: "secret:retired", detail });
  const [, , ...rows] = await database.run((orm) =>
    orm.batch([
      insertHistoryRow(orm, historyRow, sql`EXISTS (SELECT 1 FROM ${table} WHERE ${isSecret})`),
      orm.delete(table).where(isSecret),
      ...selectSecrets(orm, applicationId),
    ]),
  );
  return toSecretsView(rows);
}
