import { type Command, Option } from "commander";
import { and, eq, exists } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { applicationSecret } from "../../shared/schema.ts";
import { applicationIdArgument, findApplication } from "../application/record.ts";
import { onOneLine } from "../command-line/arguments.ts";
import { UserError } from "../command-line/errors.ts";
import { inSession, type Session, shownCommand } from "../command-line/session.ts";
import { ADMIN, examples } from "../command-line/shell.ts";
import { administrator } from "../history/administrator.ts";
import { insertNote, newNote } from "../history/note.ts";
import type { Database } from "../platform/database.ts";
import { addAddCommand } from "./add.ts";
import { retireConsoleSecret } from "./console.ts";
import { listSecrets, type SecretRow, type ShownSecret, secretTable, selectSecrets, shownSecrets } from "./list.ts";

/** Adds `secret …`. */
export function addSecretCommands(program: Command): void {
  const group = program
    .command("secret")
    .description(
      "Changes an application's secret without downtime.\n\n" +
        "Add a second one, give it to the application's server, promote it, and retire the first when nothing uses " +
        "it any more.\n\n" +
        "Secrets for people are apart from these two: add and retire them with --console.",
    )
    .summary("change an application's secret without downtime");
  addAddCommand(group);
  addList(group);
  addPromote(group);
  addRetire(group);
}

function addList(group: Command): void {
  group
    .command("list")
    .argument("<id>", "the application's ID", applicationIdArgument)
    .summary("list an application's secrets")
    .description("Lists the secrets of an application: their IDs, roles and names, never their values.")
    .addHelpText("after", examples("secret list app_…"))
    .action(
      inSession(async ({ homes, output }, id: ApplicationId) => {
        const database = homes.of(id);
        const secrets = await listSecrets(database, id);
        output.result(secrets, () => secretTable(secrets));
      }),
    );
}

function addPromote(group: Command): void {
  group
    .command("promote")
    .argument("<id>", "the application's ID", applicationIdArgument)
    .summary("make the added secret the current one")
    .description(
      "Makes the added secret the current one: the Signature header of webhooks moves to it. The other one stays " +
        "valid, as the previous one, until it is retired.",
    )
    .addHelpText("after", examples("secret promote app_…"))
    .action(
      inSession(async (session, id: ApplicationId) => {
        const secrets = await promoteSecret(session.homes.of(id), id, session.actor);
        session.output.result(secrets, () => `${secretTable(secrets)}\n\n${promotedText(id, session)}`);
      }),
    );
}

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
  const isAdded = and(eq(applicationSecret.id, added.id), eq(applicationSecret.role, "added"));
  const detail = { secretId: added.id };
  const note = await newNote(database, applicationId, actor, { action: "secret:promoted", detail });
  const [, , , ...rows] = await database.run((orm) => {
    const candidate = alias(applicationSecret, "candidate");
    const stillAdded = orm
      .select()
      .from(candidate)
      .where(and(eq(candidate.id, added.id), eq(candidate.role, "added")));
    return orm.batch([
      insertNote(orm, note, exists(stillAdded)),
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
      ...selectSecrets(orm, applicationId),
    ]);
  });
  if (!rows[0].some(({ id, role }) => id === added.id && role === "current")) {
    throw new UserError(`${added.id} was retired meanwhile: see ${ADMIN} secret list ${applicationId}.`);
  }
  return shownSecrets(rows);
}

async function readServerSecrets(database: Database, applicationId: ApplicationId): Promise<SecretRow[]> {
  await findApplication(database, applicationId);
  return database.run((orm) => selectSecrets(orm, applicationId)[0]);
}

const promotedText = (id: ApplicationId, session: Session): string =>
  `Webhooks are signed with the new secret now. When nobody uses the other one any more:\n${shownCommand(session, `secret retire ${id}`)}`;

function addRetire(group: Command): void {
  group
    .command("retire")
    .argument("<id>", "the application's ID", applicationIdArgument)
    .summary("end the previous secret")
    .description(
      "Ends the previous secret of an application within half a minute. With --secret it ends an added one that " +
        "is not to be promoted, with --console the secret of a person. The current secret cannot be retired.",
    )
    .option("--secret <secret-id>", "end this secret, which may be the added one")
    .addOption(new Option("--console <name>", "end the secret of this person").argParser(onOneLine).conflicts("secret"))
    .addHelpText(
      "after",
      examples("secret retire app_…", "secret retire app_… --secret sec_…", "secret retire app_… --console 'Ann Lee'"),
    )
    .action(
      inSession(async ({ homes, output, actor }, id: ApplicationId, options: { secret?: string; console?: string }) => {
        const { secret, console: name } = options;
        const database = homes.of(id);
        const retired =
          name === undefined
            ? await retireSecret(database, id, secret, actor)
            : await retireConsoleSecret(database, id, name, actor);
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
  applicationId: ApplicationId,
  secretId: string | undefined,
  actor = administrator(),
): Promise<{ applicationId: ApplicationId; secretId: string; secrets: ShownSecret[] }> {
  const secret = chooseRetired(applicationId, await readServerSecrets(database, applicationId), secretId);
  const isSecret = and(eq(applicationSecret.id, secret.id), eq(applicationSecret.role, secret.role));
  const detail = { secretId: secret.id };
  const note = await newNote(database, applicationId, actor, { action: "secret:retired", detail });
  const [, , ...rows] = await database.run((orm) =>
    orm.batch([
      insertNote(orm, note, exists(orm.select().from(applicationSecret).where(isSecret))),
      orm.delete(applicationSecret).where(isSecret),
      ...selectSecrets(orm, applicationId),
    ]),
  );
  // Not the number of deleted rows: a repeat after a lost response deletes none.
  if (rows[0].some(({ id }) => id === secret.id)) {
    throw new UserError(
      `${secret.id} is not retired: it was promoted meanwhile, see ${ADMIN} secret list ${applicationId}.`,
    );
  }
  return { applicationId, secretId: secret.id, secrets: shownSecrets(rows) };
}

function chooseRetired(applicationId: ApplicationId, secrets: SecretRow[], secretId: string | undefined): SecretRow {
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
