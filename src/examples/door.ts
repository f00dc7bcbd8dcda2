import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { VerificationFailure } from "../verify/index.ts";
import { DoorControl } from "./door-control.ts";

/**
 * A door to start from, with nothing but Node's own modules and the verifier (Node 22.18 or newer). It reads badge
 * signatures, one a line, and prints what the door does and why:
 *
 *   node src/examples/door.ts --service https://badges.example --application app_…
 *
 * It goes on without the network by what it keeps in its file. With --port it also takes `POST /` on this computer, whose
 * body is a badge signature: 200 opens, 403 does not.
 *
 * What is left to you: a badge signature can be copied. Give the phone a challenge, and verify with `clientSignature` that
 * it signed this one (README of the verifier, "What is not proven").
 */
const USAGE = `Usage: node src/examples/door.ts --service URL --application ID [options]

Options:
  --service URL        the service's PUBLIC_URL, as in the URIs of its status lists
  --application ID     the application whose badges open
  --file PATH          keeps keys and status lists for a restart (door.json)
  --port PORT          also take POST / on this computer
  --max-age SECONDS    oldest badge signature that opens (60)
  --accept-missing     open where there is no status list
  --accept-stale       open where the status list has expired`;

/** What a person at the terminal reads. */
const MEANINGS: Record<VerificationFailure, string> = {
  malformed: "this is not a badge signature, or it was damaged",
  "wrong-algorithm": "signed in another way than the service signs",
  "wrong-type": "another kind of token than a badge signature",
  "unknown-key": "no key of the application signed it, or a new one that was not downloaded yet",
  "bad-signature": "forged or damaged",
  "wrong-audience": "a badge of another application",
  "not-yet-valid": "from the future: is this clock right?",
  expired: "the signature has expired; the phone must get a new one",
  "too-old": "the signature is too old; the phone must get a new one",
  "wrong-badge-number": "another badge than expected",
  "wrong-client-signature": "the phone signed something else than it was asked to",
  "status-unknown": "there is no status list to tell whether the badge has ended",
  revoked: "the badge was revoked or replaced",
  suspended: "the badge is suspended or has expired",
  "status-stale": "the status list has expired, and no newer one could be downloaded",
};

const START_WAIT_MILLISECONDS = 3000;
const MAX_REQUEST_CHARACTERS = 16_384;

interface Decision {
  open: boolean;
  badgeNumber?: string;
  reason?: string;
}

async function main(): Promise<void> {
  const { service, application, file, port, ...values } = readCommandLine();
  const door = await DoorControl.open({
    serviceUrl: service.replace(/\/+$/, ""),
    applicationId: application,
    file,
    log: (line) => console.error(line),
  });
  const expected = {
    maxAgeSeconds: values.maxAgeSeconds,
    missingStatusList: values["accept-missing"] ? "accept" : "refuse",
    staleStatusList: values["accept-stale"] ? "accept" : "refuse",
  } as const;

  async function decide(jwt: string): Promise<Decision> {
    const result = await door.check(jwt, expected);
    if (!result.ok) {
      console.log(`closed: ${result.reason}: ${MEANINGS[result.reason]}`);
      return { open: false, reason: result.reason };
    }
    const despite = result.acceptedDespite === undefined ? "" : `, despite ${result.acceptedDespite}`;
    console.log(`open: badge ${result.badgeNumber}${despite}`);
    return { open: true, badgeNumber: result.badgeNumber };
  }

  // Without the network, what the file has must do.
  await Promise.race([door.refresh(), sleep(START_WAIT_MILLISECONDS, undefined, { ref: false })]);
  console.error(`Ready: ${door.describe()}.`);
  const running = door.run();
  if (port !== undefined) await listen(port, decide);
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() !== "") await decide(line.trim());
  }
  // With a port it goes on for ever: a service has no standard input.
  if (port === undefined) door.stop();
  await running;
}

/** Takes badge signatures from programs on this computer only: there is no TLS. */
async function listen(port: number, decide: (jwt: string) => Promise<Decision>): Promise<void> {
  const server = createServer(async (request, response) => {
    try {
      let jwt = "";
      for await (const chunk of request) {
        // What is longer is not a badge signature, but is read to its end, so that the response arrives.
        if (jwt.length <= MAX_REQUEST_CHARACTERS) jwt += chunk;
      }
      const decision = await decide(jwt.trim());
      response.writeHead(decision.open ? 200 : 403, { "Content-Type": "application/json" });
      response.end(`${JSON.stringify(decision)}\n`);
    } catch {
      response.destroy();
    }
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : port}/`;
  console.error(`Waiting for badge signatures on ${url}`);
}

function readCommandLine() {
  const { values } = parseArgs({
    options: {
      service: { type: "string", default: "" },
      application: { type: "string", default: "" },
      file: { type: "string", default: "door.json" },
      port: { type: "string" },
      "max-age": { type: "string", default: "60" },
      "accept-missing": { type: "boolean", default: false },
      "accept-stale": { type: "boolean", default: false },
    },
  });
  const maxAgeSeconds = Number(values["max-age"]);
  const port = values.port === undefined ? undefined : Number(values.port);
  if (!URL.canParse(values.service)) throw new Error("--service is not a URL");
  if (values.application === "") throw new Error("--application is missing");
  if (!(maxAgeSeconds >= 0)) throw new Error("--max-age is not a number of seconds");
  if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535)) {
    throw new Error("--port is not a port");
  }
  return { ...values, port, maxAgeSeconds };
}

main().catch((error: unknown) => {
  console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
  process.exit(1);
});
