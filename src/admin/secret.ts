import type { Command } from "commander";
import { and, asc, count, eq, exists, lt, notExists, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import { makeSecret, type NewSecret } from "../shared/credentials.ts";
import { application, applicationSecret, sealingKey } from "../shared/schema.ts";
import { findApplication } from "./application-record.ts";
import { UserError } from "./errors.ts";
import { bold, fieldLines, isoTime, tableLines } from "./output.ts";
import type { Database, Orm } from "./platform/database.ts";
import { newestSealer } from "./sealing-key-newest.ts";
import { inSession, type Session, shownCommand } from "./session.ts";
import { ADMIN, examples } from "./shell.ts";

/** Adds `secret …`. */
export function addSecretCommands(program: Command): void {
  const group = program
    .command("secret")
    .description(
      "Changes an application's secret without downtime.\n\n" +
        "Add a second one, give it to the application's server, promote it, and retire the first when nothing uses " +
        "it any more.",
    )
    .summary("change an application's secret without downtime");
  addAdd(group);
  addList(group);
  addPromote(group);
  addRetire(group);
}

function addAdd(group: Command): void {
  group
    .command("add <id>")
    .summary("add a second secret and print it")
    .description(
      "Adds a second secret to an application and prints it, only now.\n\n" +
        "Both secrets authenticate. Webhooks stay signed with the current one, in the Signature header, until the new " +
        "one is promoted. An application has at most two secrets.",
    )
    .addHelpText("after", examples("secret add app_…", "secret add app_… --json"))
    .action(
      inSession(
        async (session, id: string) => {
          const added = await addSecret(session.database, id);
          session.output.result(added, () => addedText(added, session));
        },
        { seals: true },
      ),
    );
}

/** What `secret add` prints. The secret is shown only here. */
export interface AddedSecret {
  applicationId: string;
  secretId: string;
  applicationSecret: string;
  role: "added";
}

/**
 * Adds a second secret. Both authenticate from now on; the `Signature` of webhooks stays with the current one until
 * `promoteSecret`.
 *
 * @throws UserError when there are two already
 */
export async function addSecret(database: Database, applicationId: string): Promise<AddedSecret> {
  await findApplication(database, applicationId);
  const { row, secret } = await makeSecret(await newestSealer(database), applicationId);
  const [, secrets] = await database.run((orm) =>
    orm.batch([insertAdded(orm, applicationId, row), selectSecrets(orm, applicationId)]),
  );
  if (secrets.some(({ id }) => id === row.id)) {
    return { applicationId, secretId: row.id, applicationSecret: secret, role: "added" };
  }
  if (secrets.length < 2) throw new UserError("The sealing key was replaced meanwhile: run the command again.");
  const next = secrets.some(({ role }) => role === "added") ? "promote" : "retire";
  throw new UserError(
    `Application ${applicationId} has two secrets already: finish that change first with ${ADMIN} secret ${next} ${applicationId}.`,
  );
}

function insertAdded(orm: Orm, applicationId: string, row: NewSecret["row"]) {
  const others = orm
    .select({ number: count() })
    .from(applicationSecret)
    .where(eq(applicationSecret.applicationId, applicationId));
  const key = orm.select().from(sealingKey).where(eq(sealingKey.version, row.sealingVersion));
  const same = orm.select().from(applicationSecret).where(eq(applicationSecret.id, row.id));
  return orm.insert(applicationSecret).select(
    orm
      .select({
        id: sql`${row.id}`.as("id"),
        applicationId: application.id,
        role: sql`'added'`.as("role"),
        digest: sql`${row.digest}`.as("digest"),
        sealed: sql`${row.sealed}`.as("sealed"),
        sealingVersion: sql`${row.sealingVersion}`.as("sealing_version"),
        createdAt: sql`${Date.now()}`.as("created_at"),
      })
      .from(application)
      .where(and(eq(application.id, applicationId), lt(sql`(${others})`, 2), exists(key), notExists(same))),
  );
}

function addedText({ applicationId, secretId, applicationSecret }: AddedSecret, session: Session): string {
  return `${bold("Added a secret.")}

${fieldLines({ "Application ID": applicationId, "Secret ID": secretId, "Application secret": applicationSecret })}

Keep the secret now: it is not shown again. When the application's server uses it:
  ${shownCommand(session, `secret promote ${applicationId}`)}`;
}

function addList(group: Command): void {
  group
    .command("list <id>")
    .summary("list an application's secrets")
    .description("Lists the secrets of an application: their IDs and roles, never their values.")
    .addHelpText("after", examples("secret list app_…"))
    .action(
      inSession(async ({ database, output }, id: string) => {
        const secrets = await listSecrets(database, id);
        output.result(secrets, () => secretTable(secrets));
      }),
    );
}

/** A secret as the commands print it, without its value. */
export interface ShownSecret {
  secretId: string;
  role: "current" | "added" | "previous";
  createdAt: string | null;
}

/** The secrets of an application, oldest first. */
export async function listSecrets(database: Database, applicationId: string): Promise<ShownSecret[]> {
  const rows = await readSecrets(database, applicationId);
  return rows.map(shownSecret);
}

type SecretRow = typeof applicationSecret.$inferSelect;

async function readSecrets(database: Database, applicationId: string): Promise<SecretRow[]> {
  await findApplication(database, applicationId);
  return database.run((orm) => selectSecrets(orm, applicationId));
}

const selectSecrets = (orm: Orm, applicationId: string) =>
  orm
    .select()
    .from(applicationSecret)
    .where(eq(applicationSecret.applicationId, applicationId))
    .orderBy(asc(applicationSecret.createdAt));

const shownSecret = ({ id, role, createdAt }: SecretRow): ShownSecret => ({
  secretId: id,
  role,
  createdAt: isoTime(createdAt),
});

/** A table of secrets, without their values. */
export function secretTable(secrets: readonly ShownSecret[]): string {
  const rows = secrets.map(({ secretId, role, createdAt }) => [secretId, role, createdAt ?? ""]);
  return tableLines(["SECRET ID", "ROLE", "CREATED"], rows, "There are no secrets.");
}

function addPromote(group: Command): void {
  group
    .command("promote <id>")
    .summary("make the added secret the current one")
    .description(
      "Makes the added secret the current one: the Signature header of webhooks moves to it. The other one stays " +
        "valid, as the previous one, until it is retired.",
    )
    .addHelpText("after", examples("secret promote app_…"))
    .action(
      inSession(async (session, id: string) => {
        const secrets = await promoteSecret(session.database, id);
        session.output.result(secrets, () => `${secretTable(secrets)}\n\n${promotedText(id, session)}`);
      }),
    );
}

/**
 * Makes the added secret the current one, which signs webhooks. The other one stays valid as the previous one.
 *
 * @throws UserError when none was added, or when it is retired meanwhile
 */
export async function promoteSecret(database: Database, applicationId: string): Promise<ShownSecret[]> {
  const added = (await readSecrets(database, applicationId)).find(({ role }) => role === "added");
  if (added === undefined) {
    throw new UserError(`There is no added secret to promote: run ${ADMIN} secret add ${applicationId} first.`);
  }
  const isAdded = and(eq(applicationSecret.id, added.id), eq(applicationSecret.role, "added"));
  const [, , secrets] = await database.run((orm) => {
    const candidate = alias(applicationSecret, "candidate");
    const stillAdded = orm
      .select()
      .from(candidate)
      .where(and(eq(candidate.id, added.id), eq(candidate.role, "added")));
    return orm.batch([
      orm
        .update(applicationSecret)
        .set({ role: "previous" })
        .where(
          and(
            eq(applicationSecret.applicationId, applicationId),
            eq(applicationSecret.role, "current"),
            exists(stillAdded),
          ),
        ),
      orm.update(applicationSecret).set({ role: "current" }).where(isAdded),
      selectSecrets(orm, applicationId),
    ]);
  });
  if (!secrets.some(({ id, role }) => id === added.id && role === "current")) {
    throw new UserError(`${added.id} was retired meanwhile: see ${ADMIN} secret list ${applicationId}.`);
  }
  return secrets.map(shownSecret);
}

const promotedText = (id: string, session: Session): string =>
  `Webhooks are signed with the new secret now. When nobody uses the other one any more:\n${shownCommand(session, `secret retire ${id}`)}`;

function addRetire(group: Command): void {
  group
    .command("retire <id>")
    .summary("end the previous secret")
    .description(
      "Ends the previous secret of an application within half a minute. With --secret it ends an added one that " +
        "is not to be promoted. The current secret cannot be retired.",
    )
    .option("--secret <secret-id>", "end this secret, which may be the added one")
    .addHelpText("after", examples("secret retire app_…", "secret retire app_… --secret sec_…"))
    .action(
      inSession(async ({ database, output }, id: string, { secret }: { secret?: string }) => {
        const retired = await retireSecret(database, id, secret);
        output.result(retired, () => `Retired ${retired.secretId}.\n\n${secretTable(retired.secrets)}`);
      }),
    );
}

/**
 * Ends the previous secret, or the named one unless it is current. It stops authenticating within half a minute.
 *
 * @throws UserError when there is no such secret, or when it is the current one or becomes it meanwhile
 */
export async function retireSecret(
  database: Database,
  applicationId: string,
  secretId: string | undefined,
): Promise<{ applicationId: string; secretId: string; secrets: ShownSecret[] }> {
  const secret = chooseRetired(applicationId, await readSecrets(database, applicationId), secretId);
  const [, secrets] = await database.run((orm) =>
    orm.batch([
      orm
        .delete(applicationSecret)
        .where(and(eq(applicationSecret.id, secret.id), eq(applicationSecret.role, secret.role))),
      selectSecrets(orm, applicationId),
    ]),
  );
  // Not the number of deleted rows: a repeat after a lost response deletes none.
  if (secrets.some(({ id }) => id === secret.id)) {
    throw new UserError(
      `${secret.id} is not retired: it was promoted meanwhile, see ${ADMIN} secret list ${applicationId}.`,
    );
  }
  return { applicationId, secretId: secret.id, secrets: secrets.map(shownSecret) };
}

function chooseRetired(applicationId: string, secrets: SecretRow[], secretId: string | undefined): SecretRow {
  const named = secrets.find(({ id }) => id === secretId);
  if (secretId !== undefined && named === undefined) {
    throw new UserError(
      `Application ${applicationId} has no secret ${secretId}: see ${ADMIN} secret list ${applicationId}.`,
    );
  }
  const secret = named ?? secrets.find(({ role }) => role === "previous");
  if (secret === undefined) {
    const added = secrets.some(({ role }) => role === "added");
    const step = added ? `run ${ADMIN} secret promote ${applicationId} first` : "there is only the current one";
    throw new UserError(`Application ${applicationId} has no previous secret to retire: ${step}.`);
  }
  if (secret.role === "current") {
    throw new UserError(
      `${secret.id} is the current secret: add another with ${ADMIN} secret add ${applicationId} and promote it.`,
    );
  }
  return secret;
}
