import { type Command, Option } from "commander";
import { eq, exists, sql } from "drizzle-orm";
import { ROLES, type Role } from "../../shared/actor.ts";
import { makeSecret, type NewSecret } from "../../shared/credentials.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { MAX_CONSOLE_SECRETS } from "../../shared/limits.ts";
import { application, applicationSecret, sealingKey } from "../../shared/schema.ts";
import { applicationIdArgument, findApplication } from "../application/record.ts";
import { onOneLine } from "../command-line/arguments.ts";
import { UserError } from "../command-line/errors.ts";
import { bold, fieldLines } from "../command-line/output.ts";
import { inSession, type Session, shownCommand } from "../command-line/session.ts";
import { ADMIN, examples, shellWord } from "../command-line/shell.ts";
import { administrator } from "../history/administrator.ts";
import { insertNote, newNote } from "../history/note.ts";
import { type Database, insertWhere, type Orm } from "../platform/database.ts";
import { newestSealer } from "../sealing-key/newest.ts";
import { type AddedConsoleSecret, addConsoleSecret } from "./console.ts";

/** Adds `secret add`. */
export function addAddCommand(group: Command): void {
  group
    .command("add")
    .argument("<id>", "the application's ID", applicationIdArgument)
    .summary("add a second secret, or one for a person, and print it")
    .description(
      "Adds a second secret to an application and prints it. It is not shown again.\n\n" +
        "Both secrets authenticate. Webhooks stay signed with the current one, in the Signature header, until the new " +
        "one is promoted. An application's server has at most two secrets.\n\n" +
        `With --console it is a secret for a person, to sign in at /console; it never signs webhooks. An operator may do ` +
        "what the server may, reception only reads and creates and revokes invitations, a viewer only reads. What they do " +
        `is in the history under their name. An application has at most ${MAX_CONSOLE_SECRETS} of them.`,
    )
    .option("--console <name>", "add a secret for the person of this name", onOneLine)
    .addOption(new Option("--role <role>", "what the person may do (operator)").choices(ROLES))
    .addHelpText(
      "after",
      examples(
        "secret add app_…",
        "secret add app_… --console 'Ann Lee'",
        "secret add app_… --console 'Front desk' --role reception",
      ),
    )
    .action(
      inSession(
        async (session, id: ApplicationId, { console: name, role }: { console?: string; role?: Role }) => {
          if (role !== undefined && name === undefined) {
            throw new UserError("Only a person's secret has a role: give --console NAME, too.");
          }
          if (name !== undefined) {
            const added = await addConsoleSecret(
              session.homes.of(id),
              id,
              { name, role: role ?? "operator" },
              session.actor,
            );
            return session.output.result(added, () => addedConsoleText(added, session));
          }
          const added = await addSecret(session.homes.of(id), id, session.actor);
          session.output.result(added, () => addedText(added, session));
        },
        { seals: true },
      ),
    );
}

/** What `secret add` prints. The secret is shown only here. */
interface AddedSecret {
  applicationId: ApplicationId;
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
export async function addSecret(
  database: Database,
  applicationId: ApplicationId,
  actor = administrator(),
): Promise<AddedSecret> {
  await findApplication(database, applicationId);
  const { row, secret } = await makeSecret(await newestSealer(database), applicationId);
  const note = await newNote(database, applicationId, actor, { action: "secret:added", detail: { secretId: row.id } });
  const [, , secrets] = await database.run((orm) =>
    orm.batch([
      insertAdded(orm, applicationId, row),
      insertNote(orm, note, exists(orm.select().from(applicationSecret).where(eq(applicationSecret.id, row.id)))),
      orm.select().from(applicationSecret).where(eq(applicationSecret.applicationId, applicationId)),
    ]),
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

function insertAdded(orm: Orm, applicationId: ApplicationId, row: NewSecret["row"]) {
  return insertWhere(
    orm,
    applicationSecret,
    { ...row, applicationId, role: "added", createdAt: Date.now() },
    sql`WHERE EXISTS (SELECT 1 FROM ${application} WHERE id = ${applicationId})
      AND (SELECT count(*) FROM ${applicationSecret} WHERE application_id = ${applicationId}) < 2
      AND EXISTS (SELECT 1 FROM ${sealingKey} WHERE version = ${row.sealingVersion})
      AND NOT EXISTS (SELECT 1 FROM ${applicationSecret} WHERE id = ${row.id})`,
  );
}

function addedText({ applicationId, secretId, applicationSecret }: AddedSecret, session: Session): string {
  return `${bold("Added a secret.")}

${fieldLines({ "Application ID": applicationId, "Secret ID": secretId, "Application secret": applicationSecret })}

Keep the secret now: it is not shown again. When the application's server uses it:
  ${shownCommand(session, `secret promote ${applicationId}`)}`;
}

function addedConsoleText(added: AddedConsoleSecret, session: Session): string {
  const { applicationId, secretId, applicationSecret, name, role } = added;
  return `${bold(`Added a secret for ${name}.`)}

${fieldLines({
  "Application ID": applicationId,
  "Secret ID": secretId,
  "Application secret": applicationSecret,
  Role: role,
})}

Keep the secret now: it is not shown again. Whoever has it signs in at /console with it and the application ID.
When ${name} does not need it any more:
  ${shownCommand(session, `secret retire ${applicationId} --console ${shellWord(name)}`)}`;
}
