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
      "Gives an application a new signing key. It is published at once, and new badges are signed with it 10 minutes " +
        "later, when every cached copy of the key set has it. Other badges keep the key they were issued with, so every " +
        "public key handed out stays right.",
    )
    .option("--now", "sign new badges with it within 30 seconds, though doors may not know it yet")
    .addHelpText("after", examples("key rotate app_…", "key rotate app_… --now"))
    .action(async (id: string, options: { now?: boolean }, command: Command) =>
      (await actions()).rotate(id, options, command),
    );
}

function addList(group: Command): void {
  group
    .command("list <id>")
    .summary("list an application's signing keys")
    .description(
      "Lists the signing keys of an application, newest first: from when each signs new badges, which one does now, and " +
        "how many badges use it. Times are UTC.",
    )
    .addHelpText("after", examples("key list app_…"))
    .action(async (id: string, _options: object, command: Command) => (await actions()).list(id, command));
}
