import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { closeHomes, runScriptHere } from "./support/script.ts";
import { freePort, type RunningService, startService } from "./support/service.ts";

/** Everything that must not be found, by a name for the failure message. */
const secrets = new Map<string, string>();
const deliveries: { headers: IncomingHttpHeaders; body: string }[] = [];
const credentialsSchema = z.object({ applicationId: z.string(), applicationSecret: z.string() });
const applicationSchema = z.object({ applicationId: z.string() });
let service: RunningService;
/** A person who is erased, with what the service was told of them; and what it answers about them afterwards. */
const erased = { userId: "erna.erased@example.com", name: "Erna Erased", deviceModel: "Erased Model 9" };
let alias: string;
const answers: string[] = [];
let logs: string;

const receiver = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    deliveries.push({ headers: request.headers, body });
    // An endpoint that echoes the headers that it got.
    response.end(JSON.stringify(request.headers));
  });
});

beforeAll(async () => {
  service = await startService();
  await tellTheWholeStory();
  await closeHomes();
  await service.stop();
  logs = service.output();
}, 240_000);

afterAll(() => {
  receiver.close();
  service.remove();
});

async function tellTheWholeStory(): Promise<void> {
  const port = await freePort();
  receiver.listen(port, "127.0.0.1");
  await once(receiver, "listening");
  const created = await admin("application", "create", "--name", "Leaks", "--webhook-url", `http://localhost:${port}/`);
  const { applicationId, applicationSecret } = credentialsSchema.parse(created);
  secrets.set("application secret", applicationSecret);
  const added = credentialsSchema.parse(await admin("secret", "add", applicationId));
  secrets.set("added secret", added.applicationSecret);
  const ofPerson = credentialsSchema.parse(await admin("secret", "add", applicationId, "--console", "Ann"));
  secrets.set("secret of a person", ofPerson.applicationSecret);
  await admin("key", "rotate", applicationId);
  const device = (name: string) => {
    const udid = `udid-${name}-${crypto.randomUUID()}`;
    secrets.set(`udid of ${name}`, udid);
    return { applicationid: applicationId, udid };
  };
  const alice = device("alice");
  await post("/v1/badge", alice, { userId: "alice", metadata: { os: "Android" } }, 201);
  await post("/v1/badge/sign", alice, { base64: "aGVsbG8=" }, 200);
  const pending = await post("/v1/invitation", device("host"), { expiresAt: inOneHour() }, 201);
  secrets.set("pending invitation token", String(pending.id));
  const revoked = await post("/v1/invitation", device("host 2"), { expiresAt: inOneHour() }, 201);
  const credentials = { applicationid: applicationId, applicationsecret: applicationSecret };
  const revocation = await fetch(`${service.origin}/v1/invitation/${revoked.id}/revoke`, {
    method: "PATCH",
    headers: credentials,
  });
  expect(revocation.status).toBe(200);
  secrets.set("revoked invitation token", String(revoked.id));
  for (const { applicationSecret: applicationsecret } of [{ applicationSecret }, ofPerson]) {
    const headers = { ...credentials, applicationsecret };
    expect((await fetch(`${service.origin}/v1/badges`, { headers })).status).toBe(200);
  }
  await post("/v1/badge", { ...alice, applicationsecret: "bdss_wrong" }, "not JSON", 400);
  await tellOfInvitations(credentials);
  await untilDelivered();
  await tellOfErasure(credentials);
  secrets.set("webhook signature", String(deliveries[0]?.headers.signature));
  const [entry] = String(deliveries[0]?.headers["webhook-signature"]).split(" ");
  secrets.set("webhook-signature entry", String(entry));
}

/** Tokens that are never spent: of several invitations at once, and of a key that a caller may repeat. */
async function tellOfInvitations(credentials: Record<string, string>): Promise<void> {
  const udid = `udid-reception-${crypto.randomUUID()}`;
  secrets.set("udid of reception", udid);
  const headers = { ...credentials, udid, "idempotency-key": crypto.randomUUID() };
  const invitations = [{ expiresAt: inOneHour() }, { expiresAt: inOneHour(), name: "Visitor" }];
  const several = await post("/v1/invitations", headers, { invitations }, 200);
  for (const { id } of z.array(z.object({ id: z.string() })).parse(several.invitations)) {
    secrets.set(`unspent token ${secrets.size}`, id);
  }
}

/** By the server and by the script, whose commands the service has in a table of its own. */
async function tellOfErasure(credentials: Record<string, string>): Promise<void> {
  const { applicationId } = applicationSchema.parse({ applicationId: credentials.applicationid });
  const { userId, name, deviceModel } = erased;
  const path = `/v1/users/${encodeURIComponent(userId)}`;
  const server = async (method: string, path: string, body?: object) => {
    const init = { method, headers: credentials, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(service.origin + path, init);
    expect(response.status, path).toBe(200);
    return response.text();
  };
  const phone = (place: number) => {
    const udid = `udid-erased-${place}-${crypto.randomUUID()}`;
    secrets.set(`udid of an erased phone ${place}`, udid);
    return { applicationid: applicationId, udid };
  };
  const invite = () =>
    post("/v1/invitation", { ...credentials, ...phone(0) }, { expiresAt: inOneHour(), name, userId }, 201);
  const { id: invitationToken, badgeId } = await invite();
  const metadata = { deviceModel };
  await post("/v1/badge", phone(1), { userId, metadata, invitationToken }, 201);
  await post("/v1/badge", phone(2), { userId, metadata }, 201);
  await server("PATCH", `/v1/badges/${badgeId}/suspend`, { reason: `${name} is away` });
  await admin("badge", "resume", String(badgeId));
  await admin("user", "block", applicationId, userId);
  await admin("user", "unblock", applicationId, userId);
  secrets.set("token of an invitation of somebody who is erased", String((await invite()).id));
  const isBefore = await server("GET", `/v1/history?per_page=100`);
  expect(isBefore).toContain(userId);
  const told = z
    .object({ userId: z.string(), erased: z.number() })
    .parse(JSON.parse(await server("PATCH", `${path}/erase`)));
  expect(told).toEqual({ userId: expect.stringMatching(/^erased:/), erased: 2 });
  alias = told.userId;
  // By the script again, of which the table of its commands must not speak either.
  await admin("user", "erase", applicationId, userId);
  const lists = [
    "changes",
    "history",
    "badges",
    "badges?state=revoked",
    "invitations",
    "users?state=blocked",
    "application",
  ];
  for (const list of [...lists, `users/${encodeURIComponent(alias)}/badges`]) {
    answers.push(await server("GET", `/v1/${list}`));
  }
}

async function admin(...words: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await runScriptHere([...words, "--json"], join(service.folder, "state"));
  expect({ code, stderr }, words.join(" ")).toMatchObject({ code: 0 });
  return JSON.parse(stdout);
}

async function post(
  path: string,
  headers: Record<string, string>,
  body: unknown,
  status: number,
): Promise<Record<string, unknown>> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(service.origin + path, { method: "POST", headers, body: text });
  expect(response.status, path).toBe(status);
  return response.json();
}

const inOneHour = () => new Date(Date.now() + 3600_000).toISOString();

async function untilDelivered(): Promise<void> {
  const isLogged = () => service.output().includes('"event":"delivery"');
  await vi.waitFor(() => expect(isLogged(), "a delivery in the log").toBe(true), { timeout: 60_000 });
}

/** All that the service wrote, but for the two files that stand for the Worker's own secrets and for the demo. */
function storage(): { name: string; bytes: Buffer }[] {
  const root = join(service.folder, "state");
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !["sealing-keys.env", "demo-application.json"].includes(entry.name))
    .map((entry) => ({ name: entry.name, bytes: readFileSync(join(entry.parentPath, entry.name)) }));
}

/** The rows of every table of every database, as text, by the table's name. */
function databases(): { name: string; rows: string[] }[] {
  const root = join(service.folder, "state");
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".sqlite"))
    .flatMap((entry) => {
      const database = new DatabaseSync(join(entry.parentPath, entry.name), { readOnly: true });
      const tables = z
        .array(z.object({ name: z.string() }))
        .parse(database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all());
      const read = tables.map(({ name }) => {
        const select = database.prepare(`SELECT * FROM "${name}"`);
        // The runtime's own tables have nanoseconds.
        select.setReadBigInts(true);
        return { name, rows: select.all().map((row) => Object.values(row).join("\n")) };
      });
      database.close();
      return read;
    });
}

/**
 * The forms in which a text may hide: as it is, hex, and base64 at each of the three places it can start in; and as the random
 * bytes that it is made of.
 */
function forms(secret: string): (string | Buffer)[] {
  const bytes = Buffer.from(secret);
  const random = Buffer.from(secret.replace(/^(bdss|inv)_/, ""), "base64url");
  const base64 = [0, 1, 2].flatMap((shift) => {
    const shifted = Buffer.concat([Buffer.alloc(shift), bytes]);
    // Characters that also depend on the neighbours are left out.
    const [start, end] = [Math.ceil((shift * 4) / 3), Math.floor(((shift + bytes.length) * 4) / 3)];
    return [shifted.toString("base64").slice(start, end), shifted.toString("base64url").slice(start, end)];
  });
  return [
    secret,
    bytes.toString("hex"),
    bytes.toString("hex").toUpperCase(),
    ...base64,
    random,
    random.toString("hex"),
  ];
}

describe("a copy of everything the service writes (contract section 9)", () => {
  it("comes from a full run: badges, signatures, invitations, a delivered webhook, D1 and objects", () => {
    const [delivery] = deliveries;
    const secret = secrets.get("application secret") ?? "";
    expect(delivery?.headers.signature).toBe(
      createHmac("sha1", secret)
        .update(delivery?.body ?? "")
        .digest("base64"),
    );
    expect(storage().filter(({ name }) => name.endsWith(".sqlite")).length).toBeGreaterThanOrEqual(2);
    const everything = Buffer.concat(storage().map(({ bytes }) => bytes));
    expect(everything.includes("alice"), "user IDs are there, so the search can find what is").toBe(true);
    expect(logs).toContain('"event":"request"');
  });

  it("has no secret, token, udid or signature header, in any form, in storage or in logs", () => {
    const places = [
      ...storage(),
      { name: "logs", bytes: Buffer.from(logs.replace(service.demo.applicationSecret, "")) },
    ];
    const found = [...secrets].flatMap(([name, secret]) =>
      places
        .filter(({ bytes }) => forms(secret).some((form) => bytes.includes(form)))
        .map((place) => `${name} in ${place.name}`),
    );
    expect(found).toEqual([]);
    expect(secrets.size).toBe(17);
  });

  it("has the invitations in the objects' journals, and no token that somebody may still claim (contract section 21)", () => {
    const journals = databases().filter(({ name }) => name === "journal_entry");
    expect(journals.length).toBeGreaterThan(0);
    const entries = journals.flatMap(({ rows }) => rows);
    expect(entries.some((entry) => entry.includes("invitation:created"))).toBe(true);
    const unspent = [...secrets].filter(([name]) => name.includes("token"));
    expect(unspent.length).toBeGreaterThanOrEqual(5);
    for (const [name, token] of unspent) {
      expect(
        entries.filter((entry) => entry.includes(token)),
        name,
      ).toEqual([]);
    }
  });

  it("speaks of an erased person in the journal alone: in no table, event, history, log line or list (contract section 24)", () => {
    const persons = Object.values(erased);
    const tables = databases().map(({ name, rows }) => ({ name, text: rows.join("\n") }));
    const speaks = (text: string) =>
      persons.some((part) => text.includes(part) || text.includes(encodeURIComponent(part)));
    expect(tables.filter(({ text }) => text.includes(alias)).map(({ name }) => name)).toEqual(
      expect.arrayContaining(["badge", "history", "invitation", "webhook_event"]),
    );
    expect(new Set(tables.filter(({ text }) => speaks(text)).map(({ name }) => name))).toEqual(
      new Set(["journal_entry"]),
    );
    expect(logs.split("\n").filter(speaks)).toEqual([]);
    expect(answers.filter(speaks)).toEqual([]);
    expect(answers.join("\n")).toContain(alias);
  });

  it("has no private key in the clear", () => {
    const pkcs8P256 = "308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420";
    const [sealingKey = ""] =
      /(?<=SEALING_KEY_1=)\S+/.exec(readFileSync(join(service.folder, "state", "sealing-keys.env"), "utf8")) ?? [];
    expect(sealingKey.length).toBeGreaterThan(2000);
    for (const { bytes } of [...storage(), { bytes: Buffer.from(logs) }]) {
      expect(bytes.includes(Buffer.from(pkcs8P256, "hex"))).toBe(false);
      expect(bytes.includes(pkcs8P256)).toBe(false);
      expect(bytes.includes(Buffer.from(pkcs8P256, "hex").toString("base64").slice(0, -4))).toBe(false);
      expect(bytes.includes(sealingKey.replaceAll('"', "").slice(40, 200))).toBe(false);
    }
  });
});
