import type { Command } from "commander";
import { createProgram } from "../program.ts";
import { addApplicationCommands } from "./application.ts";
import { addBadgeCommands } from "./badge.ts";
import { addInitCommand } from "./init.ts";
import { addKeyCommands } from "./key.ts";
import { addReconcileCommand } from "./reconcile.ts";
import { addSealingKeyCommands } from "./sealing-key.ts";
import { addSecretCommands } from "./secret.ts";
import { addWebhookCommands } from "./webhook.ts";

/** The whole script: defining its commands loads nothing of what they do. */
export function createAdminProgram(): Command {
  const program = createProgram();
  addApplicationCommands(program);
  addSecretCommands(program);
  addKeyCommands(program);
  addWebhookCommands(program);
  addBadgeCommands(program);
  addSealingKeyCommands(program);
  addReconcileCommand(program);
  addInitCommand(program);
  // --help is the one way to a page.
  for (const group of program.commands) group.helpCommand(false);
  return program;
}
