import type { Command } from "commander";
import { examples } from "../program.ts";

/** Adds `key …`. */
export function addKeyCommands(program: Command): void {
  const group = program
    .command("key")
    .summary("list and rotate the keys that sign badges")
    .description("Lists and rotates the keys that sign badges.");
  addRotate(group);
  addList(group);
}

const actions = () => import("../actions/key.ts");

function addRotate(group: Command): void {
  group
    .command("rotate <id>")
    .summary("give new badges a new signing key")
    .description(
      "Gives an application a new signing key. Badges that are issued from now on get it; the others keep the key they " +
        "were issued with, so every public key handed out stays right.",
    )
    .addHelpText("after", examples("key rotate app_…"))
    .action(async (id: string, _options: object, command: Command) => (await actions()).rotate(id, command));
}

function addList(group: Command): void {
  group
    .command("list <id>")
    .summary("list an application's signing keys")
    .description("Lists the signing keys of an application, newest first, with the number of badges that use each.")
    .addHelpText("after", examples("key list app_…"))
    .action(async (id: string, _options: object, command: Command) => (await actions()).list(id, command));
}
