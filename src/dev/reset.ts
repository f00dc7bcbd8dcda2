import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { describeError, UserError } from "../admin/command-line/errors.ts";
import { askOnTerminal } from "../admin/command-line/terminal.ts";
import { takeLock } from "../admin/platform/file-lock.ts";
import { formatPath, localState } from "../admin/platform/paths.ts";
import { assertStateWritable } from "../admin/platform/writable.ts";

/** `npm run reset`: deletes the local data, after asking. */

const state = localState();
/** The databases come first: sealing keys without data do no harm, but data without its keys cannot be opened. */
const localData = [join(state.persistTo, "v3"), state.demoApplication, state.sealingKeys, state.serviceOrigin];

const HELP = `Usage: npm run reset [-- --yes]

Deletes the local applications, badges and keys, after asking. The service must
not be running.

Options:
  --yes        do not ask
  -h, --help   show this page
`;

function readCommandLine(words: string[]) {
  try {
    return parseArgs({ args: words, options: { yes: { type: "boolean" }, help: { type: "boolean", short: "h" } } })
      .values;
  } catch {
    throw new UserError("The only options are --yes and --help, as in npm run reset -- --yes");
  }
}

async function confirm(): Promise<boolean> {
  const question = "Delete all local applications, badges and keys? Type yes: ";
  const isSure = await askOnTerminal(question, (answer) => answer.toLowerCase() === "yes");
  if (isSure === null) throw new UserError("There is no terminal to ask on: run npm run reset -- --yes");
  return isSure;
}

async function reset(): Promise<void> {
  const { yes: sure = false, help = false } = readCommandLine(process.argv.slice(2));
  if (help) return void process.stdout.write(HELP);
  const existing = localData.filter((path) => existsSync(path));
  if (existing.length === 0) return console.log("There is no local data.");
  assertStateWritable(state);
  const release = takeLock(state.serviceLock, 0);
  if (release === null) throw new UserError("The service is running: stop it first (Ctrl-C where it was started).");
  if (!sure && !(await confirm())) return console.log("Nothing was deleted.");
  for (const path of existing) rmSync(path, { recursive: true, force: true });
  release();
  console.log(`Deleted ${existing.map(formatPath).join(", ")}.`);
}

try {
  await reset();
} catch (error) {
  console.error(describeError(error));
  process.exitCode = 1;
}
