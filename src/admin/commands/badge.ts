import type { Command } from "commander";
import { badgeNumber } from "../arguments.ts";
import { examples } from "../program.ts";

/** Adds `badge …` and `stats`. */
export function addBadgeCommands(program: Command): void {
  const group = program
    .command("badge")
    .summary("show what is known of a badge number")
    .description("Shows what is known of a badge number.");
  group
    .command("show")
    .argument("<number>", "the badge number", badgeNumber)
    .summary("show what is known of a badge number")
    .description(
      "Shows whether a badge number is issued, reserved by an invitation, retired, free, or in no application's range, " +
        "and to whom it belongs. A number in no application's range is a result like the others (state: outside, exit code " +
        "0), not a mistake. Devices are not shown: the service does not keep their udids.",
    )
    .addHelpText("after", examples("badge show 1004831324"))
    .action(async (number: number, _options: object, command: Command) => (await actions()).show(number, command));
  program
    .command("stats <id>")
    .summary("count an application's badges and invitations")
    .description(
      "Counts the badges of an application by device model, operating system, its version and the SDK's version, its " +
        "invitations by state, and its numbers.",
    )
    .addHelpText("after", examples("stats app_…", "stats app_… --json"))
    .action(async (id: string, _options: object, command: Command) => (await actions()).stats(id, command));
}

const actions = () => import("../actions/badge.ts");
