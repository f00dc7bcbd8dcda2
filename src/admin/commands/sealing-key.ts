import type { Command } from "commander";
import { positiveNumber, seconds } from "../arguments.ts";
import { examples } from "../program.ts";

/** Adds `sealing-key …`. */
export function addSealingKeyCommands(program: Command): void {
  const group = program
    .command("sealing-key")
    .summary("list and rotate the keys that seal secrets")
    .description(
      "Lists and rotates the sealing keys. Secrets and private keys are sealed to the public half, in D1; the private " +
        "half is a Worker secret and opens them. To change the key: rotate, reseal, remove the old version.",
    );
  addList(group);
  addRotate(group);
  addReseal(group);
  addRemove(group);
}

const actions = () => import("../actions/sealing-key.ts");

function addList(group: Command): void {
  group
    .command("list")
    .summary("list the sealing keys and what needs them")
    .description("Lists the sealing keys, with the number of sealed values that need each.")
    .addHelpText("after", examples("sealing-key list", "sealing-key list --env production"))
    .action(async (_options: object, command: Command) => (await actions()).list(command));
}

function addRotate(group: Command): void {
  group
    .command("rotate")
    .summary("make the next sealing key")
    .description(
      "Makes the next sealing key: what is sealed from now on is sealed to it. Locally the private half goes into " +
        ".wrangler/sealing-keys.env, and a running npm start restarts itself with it. With --env it becomes a Worker secret, by " +
        "wrangler secret put, under a name of its own (version and fingerprint), and is never on this computer's disk.",
    )
    .addHelpText("after", examples("sealing-key rotate", "sealing-key rotate --env production"))
    .action(async (_options: object, command: Command) => (await actions()).rotate(command));
}

function addReseal(group: Command): void {
  group
    .command("reseal")
    .summary("watch the service re-seal everything to the newest key")
    .description(
      "Shows how many values still need an older key until there are none. The running service re-seals them by " +
        "itself, since only it can open them: stopping this command stops nothing, and it can be run again.",
    )
    .option("--wait <seconds>", "give up when nothing changes for so long", seconds, 150)
    .addHelpText("after", examples("sealing-key reseal --env production"))
    .action(async ({ wait }: { wait: number }, command: Command) => (await actions()).reseal(wait * 1000, command));
}

function addRemove(group: Command): void {
  group
    .command("remove")
    .argument("<version>", "the version to remove", positiveNumber)
    .summary("remove a sealing key that nothing needs")
    .description(
      "Removes an old sealing key: its row in D1, and its private half from the local key file or every secret of its " +
        "version from the Worker. Refused for the newest, and while any value needs it.",
    )
    .addHelpText("after", examples("sealing-key remove 1 --env production"))
    .action(async (version: number, _options: object, command: Command) => (await actions()).remove(version, command));
}
