import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";

/**
 * A webhook receiver to start from, with only Node's own modules. It verifies each webhook, responds at once, skips events
 * that it has had already, and prints each event on one line. It needs Node 22.18 or newer; without its types it runs on
 * older versions:
 *
 *   APPLICATION_SECRET=bdss_… PORT=4000 node src/examples/receiver.ts
 *
 * While you change from one application secret to the next, give both, separated by a comma.
 */
const secrets = (process.env.APPLICATION_SECRET ?? "").split(",").filter((secret) => secret !== "");
const port = Number(process.env.PORT ?? 4000);

/** An older webhook is refused, because it may be a replay. */
const TOLERANCE_SECONDS = 5 * 60;
const MAX_BODY_BYTES = 64 * 1024;
const MAX_REMEMBERED_EVENTS = 10_000;

/**
 * Events come at least once, so sometimes twice. In your server this is a unique column in the table that an event
 * changes. They also come in any order: of an event about a badge's state, ignore a `data.change` that is lower than the one
 * you have stored.
 */
const handled = new Set<string>();

const server = createServer((request, response) => {
  readBody(request)
    .then((body) => response.writeHead(receive(request, body)).end())
    .catch(() => response.destroy());
});

/** @returns the status to respond with: 2xx means that the event is stored; after anything else it is sent again */
function receive(request: IncomingMessage, body: Buffer): number {
  if (!isGenuine(request, body)) {
    console.error(
      `refused: not signed with ${secrets.length === 1 ? "this secret" : "one of these secrets"}, or too old`,
    );
    return 401;
  }
  const { id, event, data } = parseEvent(body.toString());
  if (handled.has(id)) return 204;
  // The service waits 15 s for the response: put work that takes longer into a queue.
  console.log(`${event} ${id} ${JSON.stringify(data)}`);
  handled.add(id);
  for (const oldest of handled) {
    if (handled.size <= MAX_REMEMBERED_EVENTS) break;
    handled.delete(oldest);
  }
  return 204;
}

function parseEvent(text: string): { id: string; event: string; data: unknown } {
  const parsed: unknown = JSON.parse(text);
  if (typeof parsed === "object" && parsed !== null && "id" in parsed && "event" in parsed && "data" in parsed) {
    const { id, event, data } = parsed;
    if (typeof id === "string" && typeof event === "string") return { id, event, data };
  }
  throw new Error("not an event of this service");
}

/** Checks `Signature`, and the Standard Webhooks headers, which also sign the ID and the time. */
function isGenuine({ headers }: IncomingMessage, body: Buffer): boolean {
  const { signature, "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": entries } = headers;
  const ageSeconds = Math.abs(Date.now() / 1000 - Number(timestamp));
  const isRecent = ageSeconds <= TOLERANCE_SECONDS;
  const sha1 = (secret: string) => createHmac("sha1", secret).update(body).digest("base64");
  const sha256 = (secret: string) =>
    `v1,${createHmac("sha256", secret).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
  // While the application has two secrets, there is an entry for each.
  return isRecent && isAnyOf([String(signature)], sha1) && isAnyOf(String(entries).split(" "), sha256);
}

function isAnyOf(given: readonly string[], expected: (secret: string) => string): boolean {
  return secrets.some((secret) => given.some((text) => isEqual(Buffer.from(text), Buffer.from(expected(secret)))));
}

/** Compares in constant time, because the time of a comparison could reveal how much of a guess is right. */
function isEqual(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

/** The bytes as they arrived, since those were signed: parsed and serialized again, they would not match. */
async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new Error("more than any webhook has");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

if (secrets.length === 0) {
  console.error("Set APPLICATION_SECRET to the application's secret.");
  process.exit(1);
}
server.on("error", ({ message }) => {
  console.error(`${message}: choose another PORT.`);
  process.exit(1);
});
server.listen(port, () => {
  const address = server.address();
  console.log(`Waiting for webhooks on http://localhost:${typeof address === "object" ? address?.port : port}/`);
});
