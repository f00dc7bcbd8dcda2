import type { Command } from "commander";
import { examples } from "../program.ts";

/** Adds `secret …`. */
export function addSecretCommands(program: Command): void {
  const group = program
    .command("secret")
    .description(
      "Changes an application's secret without a gap.\n\n" +
        "Add a second one, give it to the application's server, promote it, and retire the first when nothing uses " +
        "it any more.",
    )
    .summary("change an application's secret without a gap");
  addAdd(group);
  addList(group);
  addPromote(group);
  addRetire(group);
}

const actions = () => import("../actions/secret.ts");

function addAdd(group: Command): void {
  group
    .command("add <id>")
    .summary("add a second secret and print it")
    .description(
      "Adds a second secret to an application and prints it, this once.\n\n" +
        "Both secrets authenticate. Webhooks stay signed with the current one, in the Signature header, until the new " +
        "one is promoted. At most two secrets live at once.",
    )
    .addHelpText("after", examples("secret add app_…", "secret add app_… --json"))
    .action(async (id: string, _options: object, command: Command) => (await actions()).add(id, command));
}

function addList(group: Command): void {
  group
    .command("list <id>")
    .summary("list the live secrets")
    .description("Lists the live secrets of an application: their IDs and roles, never their values.")
    .addHelpText("after", examples("secret list app_…"))
    .action(async (id: string, _options: object, command: Command) => (await actions()).list(id, command));
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
    .action(async (id: string, _options: object, command: Command) => (await actions()).promote(id, command));
}

function addRetire(group: Command): void {
  group
    .command("retire <id>")
    .summary("end the previous secret")
    .description(
      "Ends the previous secret of an application within half a minute. With --secret it ends an added one that " +
        "shall not be promoted. The current secret cannot be retired.",
    )
    .option("--secret <secret-id>", "end this one, which may also be the added one")
    .addHelpText("after", examples("secret retire app_…", "secret retire app_… --secret sec_…"))
    .action(async (id: string, { secret }: { secret?: string }, command: Command) =>
      (await actions()).retire(id, secret, command),
    );
}
