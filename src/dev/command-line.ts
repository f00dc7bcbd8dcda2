import { isIP } from "node:net";
import { parseArgs } from "node:util";
import { oneLine, UserError } from "../admin/command-line/errors.ts";

const DEFAULT_PORT = 8787;
const MAX_PORT = 65_535;
const SEE_HELP = "see npm start -- --help";

export const HELP = `Usage: npm start [-- --port PORT] [--host ADDRESS]

Runs the service on this computer: creates local keys, a database and a demo
application if they are missing, prints the application's ID and secret with
commands to try, and serves until Ctrl-C. The data stays, in .wrangler/ or in
the folder that BADGE_STATE_DIR names; npm run reset deletes it.

Options:
  --port PORT      serve on this port instead of ${DEFAULT_PORT}
  --host ADDRESS   serve on this address of the computer instead of on
                   localhost, or on all of them with 0.0.0.0, so that a phone
                   on the same network can reach the service
  -h, --help       show this page

With --host, everybody who can reach the address can call the service. There is
no TLS: udids and the application's secret can be read on the way. Wrangler's
development server is reachable, too. Use it on a network that you trust, and
only for as long as you need it.

Examples:
  npm start
  npm start -- --port 9000
  npm start -- --host 0.0.0.0
`;

/** Parses the command line of `npm start`. @throws UserError that says what is wrong with it */
export function readCommandLine(words: string[]) {
  const { help = false, port, host } = parseWords(words);
  return { help, port: port === undefined ? DEFAULT_PORT : parsePort(port), host: parseHost(host) };
}

function parseWords(words: string[]) {
  const options = {
    port: { type: "string" },
    host: { type: "string" },
    help: { type: "boolean", short: "h" },
  } as const;
  try {
    return parseArgs({ args: words, options }).values;
  } catch (error) {
    // Only the first sentence of Node's reason: the rest is about escaping arguments.
    const [reason = ""] = (error instanceof Error ? oneLine(error.message) : "").split(/\. /);
    throw new UserError(`${reason.replace(/\.$/, "")}; ${SEE_HELP}`);
  }
}

function parsePort(text: string): number {
  const port = /^[1-9][0-9]{0,4}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= MAX_PORT) return port;
  throw new UserError(`"${text}" is not a port: give a number from 1 to ${MAX_PORT}; ${SEE_HELP}`);
}

/** @returns an IP address; undefined for localhost */
function parseHost(text: string | undefined): string | undefined {
  if (text === undefined || text === "localhost") return undefined;
  // People copy IPv6 addresses with the brackets that URLs need.
  const address = text.replace(/^\[(.*)\]$/, "$1");
  if (isIP(address) !== 0) return address;
  throw new UserError(`"${text}" is not an IP address: give one of this computer's, or 0.0.0.0 for all; ${SEE_HELP}`);
}
