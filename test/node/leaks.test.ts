import { createHmac } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { listenSomewhere } from "../../src/dev/demo/listen.ts";
import { processesOf, untilGone } from "./support/process-tree.ts";
import { closeHomes, commandsOf, runScriptHere } from "./support/script.ts";
import { type RunningService, startService } from "./support/service.ts";

/** Everything that must not be found, by a name for the failure message. */
const secrets = new Map<string, string>();
const deliveries: { headers: IncomingHttpHeaders; body: string }[] = [];
let service: RunningService;
/** A person who is erased. */
const erased = { userId: "erna.erased@example.com", name: "Erna Erased", deviceModel: "Erased Model 9" };
let alias: string;
let logs: string;

const receiver = createServer(async (request, response) => {
  deliveries.push({ headers: request.headers, body: await text(request) });
  // An endpoint that echoes the headers that it got.
  response.end(JSON.stringify(request.headers));
});

const { create, json } = commandsOf((...words) => runScriptHere(words, join(service.folder, "state")));

beforeAll(async () => {
  service = await startService();
  await tellTheWholeStory();
  await closeHomes();
  // Ctrl-C, which leaves no process behind.
  const { below } = processesOf(service);
  expect(await service.stop()).toBe(0);
  await untilGone(below);
  logs = service.output();
}, 240_000);

afterAll(() => {
  receiver.close();
  service.remove();
});

async function tellTheWholeStory(): Promise<void> {
  const { applicationId, applicationSecret } = await create("--webhook-url", `${await listenSomewhere(receiver)}/`);
  secrets.set("application secret", applicationSecret);
  const addSecret = async (...words: string[]) =>
    z.object({ applicationSecret: z.string() }).parse(await json("secret", "add", applicationId, ...words));
  secrets.set("added secret", (await addSecret()).applicationSecret);
  const ofPerson = await addSecret("--console", "Ann");
  secrets.set("secret of a person", ofPerson.applicationSecret);
  await json("key", "rotate", applicationId);
  const alice = device(applicationId, "alice");
  await call("POST /v1/badge", alice, { userId: "alice", metadata: { os: "Android" } }, 201);
  await call("POST /v1/badge/sign", alice, { base64: "aGVsbG8=" });
  const pending = await invite(device(applicationId, "host"));
  secrets.set("pending invitation token", pending.id);
  const server = { applicationid: applicationId, applicationsecret: applicationSecret };
  const revoked = await invite(device(applicationId, "host 2"));
  await call(`PATCH /v1/invitation/${revoked.id}/revoke`, server);
  secrets.set("revoked invitation token", revoked.id);
  for (const applicationsecret of [applicationSecret, ofPerson.applicationSecret]) {
    await call("GET /v1/badges", { ...server, applicationsecret });
  }
  await call("POST /v1/badge", { ...alice, applicationsecret: "bdss_wrong" }, "not JSON", 400);
  const headers = { ...server, ...device(applicationId, "reception"), "idempotency-key": crypto.randomUUID() };
  const invitations = [{ expiresAt: inOneHour() }, { expiresAt: inOneHour(), name: "Visitor" }];
  const several = JSON.parse(await call("POST /v1/invitations", headers, { invitations }));
  for (const { id } of z.object({ invitations: z.array(invitation) }).parse(several).invitations) {
    secrets.set(`unspent token ${secrets.size}`, id);
  }
  await vi.waitFor(() => expect(service.output()).toContain('"event":"delivery"'), { timeout: 60_000 });
  await tellOfErasure(server);
  secrets.set("webhook signature", String(deliveries[0]?.headers.signature));
  const [entry] = String(deliveries[0]?.headers["webhook-signature"]).split(" ");
  secrets.set("webhook-signature entry", String(entry));
}

/** By the server and by the script, whose commands the service has in a table of its own. */
async function tellOfErasure(server: { applicationid: string; applicationsecret: string }): Promise<void> {
  const { userId, name, deviceModel } = erased;
  const { applicationid } = server;
  const actor = encodeURIComponent(userId);
  const { id: invitationToken, badgeId } = await invite(
    { ...server, ...device(applicationid, "host") },
    { name, userId },
  );
  const claim = { userId, metadata: { deviceModel }, invitationToken };
  await call("POST /v1/badge", device(applicationid, "visitor"), claim, 201);
  await call(`PATCH /v1/badges/${badgeId}/suspend`, { ...server, actor }, { reason: `${name} is away` });
  await json("badge", "resume", badgeId, "--actor", userId);
  await json("user", "block", applicationid, userId);
  ({ userId: alias } = JSON.parse(await call(`PATCH /v1/users/${actor}/erase`, server)));
  expect(alias).toMatch(/^erased:/);
  // By the script again, of which the table of its commands must not speak either.
  await json("user", "erase", applicationid, userId);
}

/** Headers of a device, whose udid is a secret. */
function device(applicationid: string, name: string) {
  const udid = `udid-${crypto.randomUUID()}`;
  secrets.set(`udid ${secrets.size} of ${name}`, udid);
  return { applicationid, udid };
}

const invitation = z.object({ id: z.string(), badgeId: z.string() });

const invite = async (headers: Record<string, string>, fields: object = {}) =>
  invitation.parse(JSON.parse(await call("POST /v1/invitation", headers, { expiresAt: inOneHour(), ...fields }, 201)));

/** @param route method and path */
async function call(
  route: string,
  headers: Record<string, string>,
  body?: object | string,
  status = 200,
): Promise<string> {
  const [method = "", path = ""] = route.split(" ");
  const sent = typeof body === "object" ? JSON.stringify(body) : body;
  const response = await fetch(service.origin + path, { method, headers, ...(sent !== undefined && { body: sent }) });
  expect(response.status, route).toBe(status);
  return response.text();
}

const inOneHour = () => new Date(Date.now() + 3600_000).toISOString();

const filesOfState = () =>
  readdirSync(join(service.folder, "state"), { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );

/** All that the service wrote, but for the two files that stand for the Worker's own secrets and for the demo. */
const storage = (): { name: string; bytes: Buffer }[] =>
  filesOfState()
    .filter(({ name }) => !["sealing-keys.env", "demo-application.json"].includes(name))
    .map(({ name, parentPath }) => ({ name, bytes: readFileSync(join(parentPath, name)) }));

/** Every table of every database, as text, by the table's name. */
const tables = (): { name: string; rows: string[] }[] =>
  filesOfState()
    .filter(({ name }) => name.endsWith(".sqlite"))
    .flatMap(({ name: file, parentPath }) => {
      const database = new DatabaseSync(join(parentPath, file), { readOnly: true });
      const names = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
      const read = z
        .array(z.object({ name: z.string() }))
        .parse(names)
        .map(({ name }) => {
          const select = database.prepare(`SELECT * FROM "${name}"`);
          // The runtime's own tables have nanoseconds.
          select.setReadBigInts(true);
          return { name, rows: select.all().map((row) => Object.values(row).join("\n")) };
        });
      database.close();
      return read;
    });

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
  const hex = bytes.toString("hex");
  return [secret, hex, hex.toUpperCase(), ...base64, random, random.toString("hex")];
}

describe("a copy of everything the service writes (contract section 9)", () => {
  it("the copy has everything of a full run: badges, signatures, invitations, a delivered webhook, D1 and objects", () => {
    const [delivery] = deliveries;
    const secret = secrets.get("application secret") ?? "";
    const hmac = createHmac("sha1", secret).update(delivery?.body ?? "");
    expect(delivery?.headers.signature).toBe(hmac.digest("base64"));
    const everything = Buffer.concat(storage().map(({ bytes }) => bytes));
    expect(everything.includes("alice"), "user IDs are there, so the search can find what is").toBe(true);
    const entries = tables().flatMap(({ name, rows }) => (name === "entry" ? rows : []));
    expect(entries.some((entry) => entry.includes("invitation:created"))).toBe(true);
    expect(logs).toContain('"event":"request"');
  });

  it("storage and logs have no secret, token, udid or signature header in any form, nor do the allocators' logs (contract section 21)", () => {
    const places = [
      ...storage(),
      // A file may have a value in pieces.
      ...tables().map(({ name, rows }) => ({ name: `table ${name}`, bytes: Buffer.from(rows.join("\n")) })),
      { name: "logs", bytes: Buffer.from(logs.replace(service.demo.applicationSecret, "")) },
    ];
    const found = [...secrets].flatMap(([name, secret]) =>
      places
        .filter(({ bytes }) => forms(secret).some((form) => bytes.includes(form)))
        .map((place) => `${name} in ${place.name}`),
    );
    expect(found).toEqual([]);
    expect(secrets.size).toBe(15);
  });

  it("only the allocator's log still names an erased person: no table, event, history or log line does (contract section 24)", () => {
    const tablesAbout = (...texts: string[]) =>
      tables().flatMap(({ name, rows }) => (texts.some((part) => rows.join("\n").includes(part)) ? [name] : []));
    const person = [...Object.values(erased), encodeURIComponent(erased.userId)];
    const aliased = ["badge", "blocked_user", "history", "invitation", "webhook_event"];
    expect(tablesAbout(alias)).toEqual(expect.arrayContaining(aliased));
    expect(new Set(tablesAbout(...person))).toEqual(new Set(["entry"]));
    expect(person.filter((part) => logs.includes(part))).toEqual([]);
  });

  it("storage has no unsealed private key", () => {
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
