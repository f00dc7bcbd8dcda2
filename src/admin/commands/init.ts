import type { Command } from "commander";
import { examples } from "../program.ts";

/** Adds `init`. */
export function addInitCommand(program: Command): void {
  program
    .command("init")
    .summary("make what the service needs before it can start")
    .description(
      "Makes what the service needs, step by step, and can be run again at any time.\n\n" +
        "Locally: the tables and the first sealing key; npm start does the same. With --env: checks wrangler.toml, " +
        "applies the migrations to the deployed database, and makes the first sealing key, whose private half becomes " +
        "a Worker secret. Each step is printed before it is taken. Log in first: npx wrangler login.",
    )
    .option("--dry-run", "print the steps without taking them")
    .addHelpText("after", examples("init", "init --env production --dry-run", "init --env production"))
    .action(async ({ dryRun = false }: { dryRun?: boolean }, command: Command) =>
      (await import("../actions/init.ts")).init(dryRun, command),
    );
}
