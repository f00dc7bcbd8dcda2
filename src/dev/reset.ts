import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";
import { describeError, Mistake } from "../admin/mistake.ts";
import { takeLock } from "../admin/platform/file-lock.ts";
import { localState, shownPath } from "../admin/platform/paths.ts";

/** `npm run reset`: deletes the local data, after asking. */

const state = localState();
/** The databases first: sealing keys without data do no harm, data without its keys is lost. */
const doomed = [join(state.persistTo, "v3"), state.demoApplication, state.sealingKeys];

function saidYes(words: string[]): boolean {
  try {
    return parseArgs({ args: words, options: { yes: { type: "boolean" } } }).values.yes ?? false;
  } catch {
    throw new Mistake("The only option is --yes, as in npm run reset -- --yes");
  }
}

async function confirm(): Promise<boolean> {
  if (!process.stdin.isTTY) throw new Mistake("Nobody is there to be asked: run npm run reset -- --yes");
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const answer = await terminal.question("Delete all local applications, badges and keys? Type yes: ");
    return answer.trim().toLowerCase() === "yes";
  } finally {
    terminal.close();
  }
}

async function reset(): Promise<void> {
  const sure = saidYes(process.argv.slice(2));
  const existing = doomed.filter((path) => existsSync(path));
  if (existing.length === 0) return console.log("There is no local data.");
  const release = takeLock(state.serviceLock, 0);
  if (release === null) throw new Mistake("The service is running: stop it first (Ctrl-C where it was started).");
  if (!sure && !(await confirm())) return console.log("Nothing was deleted.");
  for (const path of existing) rmSync(path, { recursive: true, force: true });
  release();
  console.log(`Deleted ${existing.map(shownPath).join(", ")}.`);
}

try {
  await reset();
} catch (error) {
  console.error(describeError(error));
  process.exitCode = 1;
}
