import { execFileSync, spawnSync } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningProgram, startProgram } from "./support/program.ts";

const [OLD, NEW] = ["bdss_old", "bdss_new"];
const example = (name: string): string => new URL(`../../src/examples/${name}`, import.meta.url).pathname;

const folder = mkdtempSync(join(tmpdir(), "receiver-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const isInstalled = (program: string, ...words: string[]): boolean => spawnSync(program, words).status === 0;

function buildGo(): string[] {
  const program = join(folder, "receiver");
  execFileSync("go", ["build", "-o", program, example("receiver.go")], { stdio: "inherit" });
  return [program];
}

/** How each example is started; null where its language is not installed. */
const PROGRAMS: [name: string, start: (() => string[]) | null][] = [
  ["receiver.ts", () => [process.execPath, example("receiver.ts")]],
  ["receiver.py", isInstalled("python3", "--version") ? () => ["python3", "-B", example("receiver.py")] : null],
  ["receiver.go", isInstalled("go", "version") ? buildGo : null],
];

let url = "";
let receiver: RunningProgram;

interface Sent {
  id: string;
  text: string;
  secret: string;
  at: Date;
}

const base64Key = (secret: string): string => Buffer.from(secret).toString("base64");

function webhook(options: Partial<Sent> = {}): Sent {
  const id = options.id ?? `evt_${randomBytes(13).toString("hex")}`;
  const event = { id, event: "badge:created", createdAt: new Date(), data: { id: "1000000001", userId: "Zoë\n🚪" } };
  return { id, text: JSON.stringify(event), secret: OLD, at: new Date(), ...options };
}

/** Signs as the published Standard Webhooks library and Node's HMAC do, not with the service's code. */
function headersOf({ id, text, secret, at }: Sent): Record<string, string> {
  return {
    "Content-Type": "application/json",
    Signature: createHmac("sha1", secret).update(text).digest("base64"),
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": new Webhook(base64Key(secret)).sign(id, at, text),
  };
}

async function send(sent: Sent, changed: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { method: "POST", headers: { ...headersOf(sent), ...changed }, body: sent.text });
  return response.status;
}

/** What it has printed, once an event that is sent afterwards is there too. */
async function printedOf({ id }: Sent): Promise<string[]> {
  const last = webhook();
  expect(await send(last)).toBe(204);
  await receiver.untilSaid(new RegExp(`${last.id}.*\\n`));
  return receiver.said.out.split("\n").filter((line) => line.includes(id));
}

describe.each(PROGRAMS)("the example %s (contract section 8)", (_name, start) => {
  if (start === null) {
    it.skip("needs its language", () => {});
    return;
  }
  let command: string[];

  beforeAll(async () => {
    command = start();
    receiver = startProgram(command, { env: { APPLICATION_SECRET: `${OLD},${NEW}`, PORT: "0" } });
    [, url = ""] = await receiver.untilSaid(/^Waiting for webhooks on (\S+)\n/);
  }, 120_000);

  afterAll(() => void receiver.child.kill());

  it("the example receiver accepts every kind of event, also in a chunked body, as some proxies send it, and prints it on one line", async () => {
    const created = webhook();
    const sent = { ...created, text: created.text.replace("badge:created", "badge:suspended") };
    const request = httpRequest(url, { method: "POST", headers: headersOf(sent) });
    const responded = once(request, "response");
    request.write(sent.text.slice(0, 20));
    request.end(sent.text.slice(20));
    const [response] = await responded;
    expect(response.resume().statusCode).toBe(204);
    expect(await printedOf(sent)).toEqual([`badge:suspended ${sent.id} {"id":"1000000001","userId":"Zoë\\n🚪"}`]);
  });

  it("the example receiver responds with 2xx to a repeated event, and prints it once", async () => {
    const sent = webhook();
    for (const ago of [0, 0, 60_000]) expect(await send({ ...sent, at: new Date(Date.now() - ago) })).toBe(204);
    expect(await printedOf(sent)).toEqual([expect.stringContaining("badge:created")]);
  });

  it("the example receiver accepts either of two secrets, and webhooks signed with both", async () => {
    expect(await send(webhook({ secret: NEW }))).toBe(204);
    const sent = webhook();
    const entries = [OLD, NEW].map((secret) => new Webhook(base64Key(secret)).sign(sent.id, sent.at, sent.text));
    expect(await send(sent, { "webhook-signature": entries.join(" ") })).toBe(204);
  });

  it.each<[string, (sent: Sent) => Promise<number>]>([
    [
      "another body under the same headers",
      (sent) => send({ ...sent, text: sent.text.replace("001", "002") }, headersOf(sent)),
    ],
    [
      "one signature of another secret",
      (sent) => send(sent, { Signature: headersOf({ ...sent, secret: "x" }).Signature ?? "" }),
    ],
    ["a second signature of another secret", (sent) => send(sent, { "webhook-signature": "v1,AAAA v2,BBBB" })],
    ["another ID than was signed", (sent) => send(sent, { "webhook-id": "evt_other" })],
    [
      "another time than was signed",
      (sent) => send(sent, { "webhook-timestamp": String(Math.floor(Date.now() / 1000) - 1) }),
    ],
    ["a recording of six minutes ago", (sent) => send({ ...sent, at: new Date(Date.now() - 360_000) })],
    ["one from six minutes ahead", (sent) => send({ ...sent, at: new Date(Date.now() + 360_000) })],
    ["no headers", async ({ text }) => (await fetch(url, { method: "POST", body: text })).status],
  ])("the example receiver refuses %s", async (_, sendIt) => {
    const sent = webhook();
    expect(await sendIt(sent)).toBe(401);
    expect(await printedOf(sent)).toEqual([]);
  });

  it("the example receiver reports what is missing when it has no secret", async () => {
    const { ended, said } = startProgram(command, { env: { APPLICATION_SECRET: "" } });
    expect(await ended).toBe(1);
    expect(said.err).toBe("Set APPLICATION_SECRET to the application's secret.\n");
  });
});
