import type { Command } from "commander";
import { addShow } from "./show.ts";
import { addStepCommands } from "./step.ts";

/** Adds `badge …`. */
export function addBadgeCommands(program: Command): void {
  const group = program
    .command("badge")
    .summary("show, suspend, resume, revoke, expire and rebind badges")
    .description("Shows, suspends, resumes, revokes, expires and rebinds badges.");
  addShow(group);
  addStepCommands(group);
}
