import type { Command } from "commander";
import type { AddedSecret, ShownSecret } from "../operations/secrets.ts";
import { bold, fieldLines, tableLines } from "../output.ts";
import { type Session, shownCommand, withSession } from "../session.ts";

const operations = () => import("../operations/secrets.ts");

/** `secret add` */
export async function add(id: string, command: Command): Promise<void> {
  await withSession(
    command,
    async (session) => {
      const added = await (await operations()).addSecret(session.database, id);
      session.output.result(added, () => addedText(added, session));
    },
    { seals: true },
  );
}

/** `secret list` */
export async function list(id: string, command: Command): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const secrets = await (await operations()).listSecrets(database, id);
    output.result(secrets, () => secretTable(secrets));
  });
}

/** `secret promote` */
export async function promote(id: string, command: Command): Promise<void> {
  await withSession(command, async (session) => {
    const secrets = await (await operations()).promoteSecret(session.database, id);
    session.output.result(secrets, () => `${secretTable(secrets)}\n\n${promotedText(id, session)}`);
  });
}

const promotedText = (id: string, session: Session): string =>
  `Webhooks are signed with the new secret now. When nobody uses the other one any more:\n${shownCommand(session, `secret retire ${id}`)}`;

/** `secret retire` */
export async function retire(id: string, secretId: string | undefined, command: Command): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const retired = await (await operations()).retireSecret(database, id, secretId);
    output.result(retired, () => `Retired ${retired.secretId}.\n\n${secretTable(retired.secrets)}`);
  });
}

/** A table of secrets, without their values. */
export function secretTable(secrets: readonly ShownSecret[]): string {
  const rows = secrets.map(({ secretId, role, createdAt }) => [secretId, role, createdAt ?? ""]);
  return tableLines(["SECRET ID", "ROLE", "CREATED"], rows, "There are no secrets.");
}

function addedText({ applicationId, secretId, applicationSecret }: AddedSecret, session: Session): string {
  return `${bold("Added a secret.")}

${fieldLines({ "Application ID": applicationId, "Secret ID": secretId, "Application secret": applicationSecret })}

Keep the secret now: it is not shown again. When the application's server uses it:
  ${shownCommand(session, `secret promote ${applicationId}`)}`;
}
