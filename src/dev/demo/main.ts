import { parseArgs } from "node:util";
import { oneLine } from "../../admin/command-line/errors.ts";
import { localState } from "../../admin/platform/paths.ts";
import { findLocalOrigin } from "../../admin/platform/wake.ts";
import { DemoFailure, Narrator } from "./narrator.ts";
import { tellStory } from "./story.ts";

/** `npm run demo`: the whole story on the terminal, against a running service. */

const DEFAULT_ORIGIN = "http://localhost:8787";
const HEALTH_TIMEOUT_MILLISECONDS = 10_000;

const HELP = `Usage: npm run demo [-- --url URL]

Tells the story of a badge with the running local service: an application, a
phone and a door; badges that are suspended, revoked or expire; a door that
learns of this and loses the network; a visitor, webhooks, a number that comes
back, and verified users. It checks every step against the contract. Afterwards
the application that npm start prints has a day's badges to see in the console.
It takes up to a minute.

  --url URL   where the service is, if it is not the one that runs on this data
  --help      show this page

Start the service first, in another terminal: npm start. If it keeps its data
in another folder (BADGE_STATE_DIR), set the same variable here.
`;

function readCommandLine(): { help: boolean; origin: string } {
  const origin = findLocalOrigin(localState()) ?? DEFAULT_ORIGIN;
  try {
    const options = {
      url: { type: "string", default: origin },
      help: { type: "boolean", short: "h" },
    } as const;
    const { help = false, url } = parseArgs({ options }).values;
    return { help, origin: originOf(url) };
  } catch (error) {
    if (error instanceof DemoFailure) throw error;
    throw new DemoFailure("The only options are --url and --help, as in npm run demo -- --url http://localhost:9000");
  }
}

function originOf(text: string): string {
  const url = URL.parse(text);
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw new DemoFailure(`"${text}" is not the address of a service: give one such as ${DEFAULT_ORIGIN}`);
  }
  return url.origin;
}

async function assertRunning(origin: string): Promise<void> {
  const response = await fetch(`${origin}/health`, { signal: AbortSignal.timeout(HEALTH_TIMEOUT_MILLISECONDS) }).catch(
    () => null,
  );
  if (response === null)
    throw new DemoFailure(`Nothing responds at ${origin}: run npm start first, in another terminal.`);
  const body = await response.text();
  if (body === JSON.stringify({ status: "ok" })) return;
  if (response.status === 503)
    throw new DemoFailure(`The service at ${origin} is not healthy: see what npm start says.`);
  throw new DemoFailure(`The service at ${origin} is not the badge service: give its address with --url.`);
}

async function demonstrate(): Promise<void> {
  const { help, origin } = readCommandLine();
  if (help) return void process.stdout.write(HELP);
  await assertRunning(origin);
  await tellStory(new Narrator((line) => process.stdout.write(`${line}\n`)), origin);
}

// A reader at the other end of a pipe may stop early.
process.stdout.once("error", () => process.exit());

try {
  await demonstrate();
} catch (error) {
  process.stderr.write(`${oneLine(error instanceof DemoFailure ? error.message : `Unexpected: ${error}`)}\n`);
  process.exitCode = 1;
}
