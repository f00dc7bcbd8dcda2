import { createServer, type IncomingMessage } from "node:http";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { PossessionFailure } from "../verify/index.ts";
import { ageLimits, DoorControl } from "./door-control.ts";

/**
 * A door to start from, with only Node's own modules and the verifier (Node 22.18 or newer). It reads badge signatures, one
 * per line, and prints what the door does and why:
 *
 *   node src/examples/door.ts --service https://badges.example --application app_…
 *
 * Without the network it uses what it has stored in its file. With --port it also takes `POST /` on this computer, with
 * a badge signature as the body: 200 opens, 403 does not. Web pages may not call it.
 *
 * With a scanner that types what it reads, as USB scanners do, it opens for the code of a visitor's page, whose text is a
 * badge signature. A photograph of the code is refused once it is older than --max-age.
 *
 * A badge signature can be copied. With --challenge it opens only with the phone whose key the badge is bound to (README of
 * the verifier, "The door's challenge"): the line `challenge`, or `POST /challenge`, gets a challenge for the phone at the
 * door, which is valid once and for 10 seconds. Then send the badge signature, a space and the phone's response. Challenge and
 * response can travel by NFC, Bluetooth or a QR code.
 */
const USAGE = `Usage: node src/examples/door.ts --service URL --application ID [options]

Options:
  --service URL        the service's PUBLIC_URL, as in the URIs of its status lists
  --application ID     the application whose badges open
  --file PATH          keeps keys and status lists for a restart (door-ID.json)
  --secret SECRET      the door's own: it learns of changes within two seconds; DOOR_SECRET does the same
  --port PORT          also take POST / on this computer
  --max-age SECONDS    oldest badge signature that opens, by this clock (60)
  --challenge DOOR     open only for a phone that holds its badge's key; DOOR is this door's own ID
  --accept-missing     open where there is no status list
  --accept-stale       open where the status list has expired`;

/** Explanations for a person at the terminal. */
const MEANINGS: Record<PossessionFailure, string> = {
  malformed: "this is not a badge signature, or it was damaged",
  "wrong-algorithm": "signed in another way than the service signs",
  "wrong-type": "another kind of token than a badge signature",
  "unknown-key": "no key of the application signed it, or a new one that was not downloaded yet",
  "bad-signature": "forged or damaged",
  "wrong-audience": "a badge of another application",
  "not-yet-valid": "the badge has not started yet, or this clock is wrong",
  expired: "the signature has expired, so the phone must get a new one; or this clock is ahead",
  "too-old": "the signature is too old, so the phone must get a new one; or this clock is ahead",
  "wrong-badge-number": "another badge than expected",
  "wrong-client-signature": "the phone signed something else than it was asked to",
  "status-unknown": "there is no status list to tell whether the badge has ended",
  revoked: "the badge was revoked or replaced",
  suspended: "the badge is suspended or has expired",
  "status-stale": "the status list has expired, and no newer one could be downloaded",
  "not-bound": "the badge is not bound to a phone's key",
  "malformed-response": "this is not a phone's response, or it was damaged",
  "wrong-response-algorithm": "the phone signs in another way than it should",
  "wrong-response-type": "another kind of token than a phone's response",
  "bad-response-signature": "another phone than the badge's: a copied badge signature?",
  "wrong-role": "not a phone's response",
  "wrong-challenge": "a response to another challenge: an old one, or another door's?",
  "expired-challenge": "the response came too late",
  "wrong-application": "a response for another application",
  "wrong-badge-signature": "a response for another badge signature",
};

const START_WAIT_MILLISECONDS = 3000;
/** A badge signature, a space and a response. */
const MAX_REQUEST_CHARACTERS = 2 * 16_384 + 1;

interface Decision {
  open: boolean;
  badgeNumber?: string;
  reason?: string;
}

/** Handles input: a line of the terminal, or the body of a request. */
interface InputHandler {
  /** Null if this door does not challenge. */
  challenge: (() => string) | null;
  decide: (presented: string) => Promise<Decision>;
}

async function main(): Promise<void> {
  // A message that cannot be written, on a full disk for example, must not end the door.
  process.stderr.on("error", () => {});
  const { service, application, file, port, challenge: doorId, ...values } = readCommandLine();
  const secret = (values.secret || process.env.DOOR_SECRET || "").trim() || null;
  const door = await DoorControl.open({
    serviceUrl: service.replace(/\/+$/, ""),
    applicationId: application,
    file,
    secret,
    log: (line) => console.error(line),
  });
  const isConnected = secret !== null;
  const expected = {
    ...ageLimits(values.oldestSeconds),
    missingStatusList: values["accept-missing"] ? "accept" : "refuse",
    staleStatusList: values["accept-stale"] ? "accept" : "refuse",
  } as const;

  async function decide(presented: string): Promise<Decision> {
    const [badgeSignature = "", response = ""] = presented.trim().split(/\s+/);
    const result =
      doorId === undefined
        ? await door.check(badgeSignature, expected)
        : await door.checkPhone({ badgeSignature, response }, doorId, expected);
    if (!result.ok) {
      console.log(`closed: ${result.reason}: ${MEANINGS[result.reason]}`);
      return { open: false, reason: result.reason };
    }
    const despite = result.acceptedDespite === undefined ? "" : `, despite ${result.acceptedDespite}`;
    console.log(`open: badge ${result.badgeNumber}${despite}`);
    return { open: true, badgeNumber: result.badgeNumber };
  }

  // Without the network, the door works with the content of its file.
  await Promise.race([door.refresh(), sleep(START_WAIT_MILLISECONDS, undefined, { ref: false })]);
  console.error(`Ready: ${door.describe()}.`);
  const running = Promise.all([door.run(), isConnected ? door.listen() : undefined]);
  const challenge = doorId === undefined ? null : () => door.challenge(doorId);
  if (port !== undefined) await listen(port, { challenge, decide });
  for await (const line of createInterface({ input: process.stdin })) {
    if (challenge !== null && line.trim() === "challenge") console.log(`challenge: ${challenge()}`);
    else if (line.trim() !== "") await decide(line);
  }
  // With a port it runs until it is stopped, because a service has no standard input.
  if (port === undefined) door.stop();
  await running;
}

/** Takes badge signatures only from programs on this computer, because there is no TLS. */
async function listen(port: number, { challenge, decide }: InputHandler): Promise<void> {
  async function respond(request: IncomingMessage): Promise<Response> {
    const refusal = refuseForeign(request);
    if (refusal !== null) return refusal;
    const presented = await readText(request);
    if (challenge !== null && request.url === "/challenge") return { status: 200, content: { challenge: challenge() } };
    const decision = await decide(presented);
    return { status: decision.open ? 200 : 403, content: decision };
  }

  const server = createServer(async (request, response) => {
    try {
      const { status, content } = await respond(request);
      response.writeHead(status, { "Content-Type": "application/json" });
      response.end(`${JSON.stringify(content)}\n`);
    } catch {
      response.destroy();
    }
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : port}/`;
  console.error(`Waiting for badge signatures on ${url}`);
}

interface Response {
  status: number;
  content: object;
}

const LOCAL_HOST = /^(localhost|127\.0\.0\.1)(:[0-9]+)?$/i;

/**
 * Only `POST /` and `POST /challenge` reach the door, and only from programs. A web page in this computer's browser sends an
 * `Origin`, or another `Host` if its own name leads to this computer (DNS rebinding).
 */
function refuseForeign({ method, url, headers }: IncomingMessage): Response | null {
  if (!LOCAL_HOST.test(headers.host ?? "")) return { status: 421, content: { error: "another host's address" } };
  if (headers.origin !== undefined) return { status: 403, content: { error: "web pages may not ask this door" } };
  if (url !== "/" && url !== "/challenge") return { status: 404, content: { error: "the path is / or /challenge" } };
  return method === "POST" ? null : { status: 405, content: { error: "the method is POST" } };
}

/** A longer body cannot be a badge signature. It is still read to its end, so that the response arrives. */
async function readText(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) {
    if (text.length <= MAX_REQUEST_CHARACTERS) text += chunk;
  }
  return text;
}

function readCommandLine() {
  const { values } = parseArgs({
    options: {
      service: { type: "string", default: "" },
      application: { type: "string", default: "" },
      file: { type: "string" },
      secret: { type: "string" },
      port: { type: "string" },
      "max-age": { type: "string", default: "60" },
      challenge: { type: "string" },
      "accept-missing": { type: "boolean", default: false },
      "accept-stale": { type: "boolean", default: false },
    },
  });
  const oldestSeconds = Number(values["max-age"]);
  const port = values.port === undefined ? undefined : Number(values.port);
  if (!URL.canParse(values.service)) throw new Error("--service is not a URL");
  if (values.application === "") throw new Error("--application is missing");
  if (!(Number.isFinite(oldestSeconds) && oldestSeconds >= 0)) throw new Error("--max-age is not a number of seconds");
  const isDoorId = values.challenge === undefined || /^[A-Za-z0-9_-]{1,64}$/.test(values.challenge);
  if (!isDoorId) throw new Error("--challenge takes a door's ID: 1 to 64 characters out of A-Z a-z 0-9 _ -");
  if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535)) {
    throw new Error("--port is not a port");
  }
  return { ...values, file: values.file ?? `door-${values.application}.json`, port, oldestSeconds };
}

main().catch((error: unknown) => {
  console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
  process.exit(1);
});
