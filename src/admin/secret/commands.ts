import { MAX_CONSOLE_SECRETS, MAX_DOOR_SECRETS } from "../../shared/limits/request-limits.ts";
import { ROLES } from "../../shared/roles.ts";
import { APPLICATION } from "../application/record.ts";
import { onOneLine } from "../command-line/arguments.ts";
import { choice, command, conflictsWith, group, option } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { bold, fieldLines, tableLines } from "../command-line/output.ts";
import { formatCommand, type Session } from "../command-line/session.ts";
import { shellWord } from "../command-line/shell.ts";
import { promoteSecret, retireConsoleSecret, retireSecret } from "./changes.ts";
import { addDoorSecret, listDoorSecrets, retireDoorSecret } from "./doors.ts";
import { type AddedSecret, addConsoleSecret, addSecret, listSecrets, type ShownSecret } from "./secrets.ts";

export const secretCommands = group("secret", {
  summary: "change an application's secret without downtime",
  description:
    "Changes an application's secret without downtime.\n\n" +
    "Add a second one, give it to the application's server, promote it, and retire the first when nothing uses " +
    "it any more.\n\n" +
    "People and doors have secrets besides these two: add and retire them with --console and --door.",
  commands: [
    command("add", {
      arguments: [APPLICATION],
      summary: "add a second secret, or one for a person or a door, and print it",
      description:
        "Adds a second secret to an application and prints it. It is not shown again.\n\n" +
        "Both secrets authenticate. Webhooks stay signed with the current one, in the Signature header, until the new " +
        "one is promoted. An application's server has at most two secrets.\n\n" +
        `With --console it is a secret for a person, to sign in at /console; it never signs webhooks. An operator may do ` +
        "what the server may. Reception may read, and create and revoke invitations. A viewer may only read. What they " +
        `do is in the history under their name. An application has at most ${MAX_CONSOLE_SECRETS} of them.\n\n` +
        "With --door it is a secret for a door, which can then receive changes of badges' status within two seconds, and " +
        "do nothing else. An application has at most " +
        `${MAX_DOOR_SECRETS.toLocaleString("en")} of them.`,
      options: {
        name: option("--console <name>", "add a secret for the person of this name", onOneLine),
        role: choice("--role <role>", "what the person may do (operator)", ROLES),
        door: conflictsWith(
          "role",
          conflictsWith("name", option("--door <name>", "add a secret for the door of this name", onOneLine)),
        ),
      },
      examples: ["", "--console 'Ann Lee'", "--console 'Front desk' --role reception", "--door 'Main entrance'"],
      seals: true,
      async work({ homes, actor }, id, { name, role, door }) {
        if (door !== undefined) return addDoorSecret(homes.databaseFor(id), id, door, actor);
        if (name !== undefined)
          return addConsoleSecret(homes.databaseFor(id), id, { name, role: role ?? "operator" }, actor);
        if (role !== undefined) throw new UserError("Only a person's secret has a role: give --console NAME too.");
        return addSecret(homes.databaseFor(id), id, actor);
      },
      text: addedText,
    }),
    command("list", {
      arguments: [APPLICATION],
      summary: "list an application's secrets",
      description: "Lists the secrets of an application: their IDs, roles and names, never their values.",
      work: async ({ homes }, id) => [
        ...(await listSecrets(homes.databaseFor(id), id)),
        ...(await listDoorSecrets(homes.databaseFor(id), id)),
      ],
      text: secretTable,
    }),
    command("promote", {
      arguments: [APPLICATION],
      summary: "make the added secret the current one",
      description:
        "Makes the added secret the current one: the Signature header of webhooks moves to it. The other one stays " +
        "valid, as the previous one, until it is retired.",
      work: ({ homes, actor }, id) => promoteSecret(homes.databaseFor(id), id, actor),
      text: (secrets, session, id) =>
        `${secretTable(secrets)}\n\nWebhooks are signed with the new secret now. When nothing uses the other one any more:\n` +
        formatCommand(session, `secret retire ${id}`),
    }),
    command("retire", {
      arguments: [APPLICATION],
      summary: "end the previous secret",
      description:
        "Ends the previous secret of an application within half a minute. With --secret it ends an added one that " +
        "is not to be promoted, with --console a person's, and with --door a door's. The current secret " +
        "cannot be retired.",
      options: {
        secret: option("--secret <secret-id>", "end this secret, which may be the added one", String),
        name: conflictsWith("secret", option("--console <name>", "end the secret of this person", onOneLine)),
        door: conflictsWith(
          "secret",
          conflictsWith("name", option("--door <name>", "end the secret of this door", onOneLine)),
        ),
      },
      examples: ["", "--secret sec_…", "--console 'Ann Lee'", "--door 'Main entrance'"],
      work({ homes, actor }, id, { secret, name, door }) {
        if (door !== undefined) return retireDoorSecret(homes.databaseFor(id), id, door, actor);
        if (name !== undefined) return retireConsoleSecret(homes.databaseFor(id), id, name, actor);
        return retireSecret(homes.databaseFor(id), id, secret, actor);
      },
      text: ({ secretId, secrets }) => `Retired ${secretId}.\n\n${secretTable(secrets)}`,
    }),
  ],
});

function addedText({ applicationId, secretId, applicationSecret, role, name }: AddedSecret, session: Session): string {
  const [title, next, command] = nextStep({ applicationId, role, name });
  return `${bold(title)}

${fieldLines({
  "Application ID": applicationId,
  "Secret ID": secretId,
  "Application secret": applicationSecret,
  Role: name && role,
})}

Store the secret now: it is not shown again. ${next}
  ${formatCommand(session, command)}`;
}

function nextStep({
  applicationId,
  role,
  name,
}: Pick<AddedSecret, "applicationId" | "role"> & { name: string | undefined }): [string, string, string] {
  if (name === undefined) {
    return ["Added a secret.", "When the application's server uses it:", `secret promote ${applicationId}`];
  }
  if (role === "door") {
    return [
      `Added a secret for the door ${name}.`,
      "The door calls GET /v1/live with it and the application ID.\nWhen the door is taken down:",
      `secret retire ${applicationId} --door ${shellWord(name)}`,
    ];
  }
  return [
    `Added a secret for ${name}.`,
    `It is for signing in at /console, together with the application ID.\nWhen ${name} does not need it any more:`,
    `secret retire ${applicationId} --console ${shellWord(name)}`,
  ];
}

/** A table of secrets, without their values. */
export function secretTable(secrets: readonly ShownSecret[]): string {
  const rows = secrets.map(({ secretId, role, name, createdAt }) => [secretId, role, createdAt ?? "", name ?? ""]);
  return tableLines(["SECRET ID", "ROLE", "CREATED", "NAME"], rows, "There are no secrets.");
}
