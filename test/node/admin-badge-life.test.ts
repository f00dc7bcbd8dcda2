import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { type ApplicationId, applicationId } from "../../src/shared/identifiers.ts";
import { position } from "../../src/shared/schema.ts";
import { type Harness, startHarness } from "./support/harness.ts";
import { commandsIn, commandsOf, stateFolder } from "./support/script.ts";

/** Each test runs a dozen commands. */
const LIMIT = 120_000;

let service: Harness;
let application: { applicationId: ApplicationId; applicationSecret: string };
let unusedNumber: number;

const created = z.object({ applicationId, applicationSecret: z.string(), lastNumber: z.number() });

/** Keeps the order of the keys, which is part of what is checked. */
const jsonObject = z.record(z.string(), z.unknown());

beforeAll(async () => {
  vi.stubEnv("WRANGLER_LOG", "error");
  service = await startHarness();
  const words = ["--name", "Life", "--first", "800000001", "--last", "800000100", "--json"];
  const made = await admin("application", "create", ...words);
  const { lastNumber, ...credentials } = created.parse(JSON.parse(made.stdout));
  application = credentials;
  unusedNumber = lastNumber + 1;
}, LIMIT);

afterAll(() => service?.close());

const { admin, json: adminJson, refusal } = commandsOf((...words) => service.admin(...words));
/** For what needs no service. */
const apart = commandsIn(stateFolder());

async function call(method: string, path: string, headers: Record<string, string>, body?: unknown) {
  const init = { method, headers: { applicationid: application.applicationId, ...headers } };
  const response = await fetch(
    new URL(path, service.origin),
    body === undefined ? init : { ...init, body: JSON.stringify(body) },
  );
  const json = jsonObject.parse(await response.json());
  return { status: response.status, body: json, outcome: String(json.error ?? response.status) };
}

const logIn = (udid: string, userId: string) => call("POST", "/v1/badge", { udid }, { userId });
const sign = (udid: string) => call("POST", "/v1/badge/sign", { udid }, { base64: "aGVsbG8=" });
const server = (path: string) => call("GET", path, { applicationsecret: application.applicationSecret });

async function issue(udid: string, userId: string): Promise<string> {
  return z.string().parse((await logIn(udid, userId)).body.badgeId);
}

async function changeOf(id: string): Promise<unknown> {
  const changes = z.array(jsonObject).parse((await server("/v1/changes?per_page=1000")).body.changes);
  return changes.find((change) => change.id === id)?.change;
}

describe("badge suspend, resume, revoke and expire do what the routes do (contract section 12)", () => {
  it(
    "a suspended badge is refused at once, a resumed one is not, and both commands print the badge",
    async () => {
      const number = await issue("suspended-phone", "alice");
      const suspended = await adminJson("badge", "suspend", number);
      expect(suspended).toMatchObject({ id: number, userId: "alice", state: "suspended" });
      expect((await server(`/v1/badges/${number}`)).body).toEqual(suspended);
      expect((await logIn("suspended-phone", "alice")).outcome).toBe("SUSPENDED_BADGE");
      expect((await sign("suspended-phone")).outcome).toBe("SUSPENDED_BADGE");
      expect(await adminJson("badge", "show", number)).toMatchObject({ state: "suspended", userId: "alice" });

      const change = await changeOf(number);
      expect(await adminJson("badge", "suspend", number)).toEqual(suspended);
      expect(await changeOf(number), "suspending twice is no change").toBe(change);

      const resumed = await adminJson("badge", "resume", number);
      expect(resumed).toMatchObject({ id: number, userId: "alice", state: "active" });
      expect((await logIn("suspended-phone", "alice")).status).toBe(200);
      expect((await sign("suspended-phone")).status).toBe(200);
      const shown = jsonObject.parse(await adminJson("badge", "show", number));
      expect(Date.parse(String(shown.changedAt))).toBeGreaterThan(Date.parse(String(shown.issuedAt)));
      const text = await admin("badge", "suspend", number);
      expect(text).toEqual({ code: 0, stderr: "", stdout: `Badge ${number} is suspended.\n` });
    },
    LIMIT,
  );

  it(
    "a revoked badge stays revoked: it can be revoked again, and every other step is refused",
    async () => {
      const number = await issue("revoked-phone", "bob");
      const revoked = { id: number, userId: "bob", state: "revoked" };
      expect(await adminJson("badge", "revoke", number)).toMatchObject(revoked);
      expect((await logIn("revoked-phone", "bob")).outcome).toBe("REVOKED_BADGE");
      expect(await adminJson("badge", "revoke", number)).toMatchObject(revoked);
      const final = `Ended badge: ${number} is revoked, which is final.\n`;
      expect(await refusal("badge", "suspend", number)).toBe(final);
      expect(await refusal("badge", "resume", number)).toBe(final);
      expect(await refusal("badge", "expire", number, "--at", "never")).toBe(final);
      expect(await refusal("badge", "rebind", number)).toContain(`Ended badge: ${number} is revoked`);
      expect((await server(`/v1/badges/${number}`)).body).toMatchObject(revoked);
      expect((await server("/v1/users/bob/badges")).body).toEqual({ badges: [] });
    },
    LIMIT,
  );

  it(
    "a badge that is bound to a key may be rebound for a day, and one that is not stays as it is (contract section 15)",
    async () => {
      const [bound, unbound] = [await issue("bound-phone", "bea"), await issue("plain-phone", "ben")];
      const keyThumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";
      const bind = "UPDATE badge SET key_thumbprint = ? WHERE number = ?";
      await service.database.run((_, d1) => d1.prepare(bind).bind(keyThumbprint, Number(bound)).run());
      const opened = Date.now();
      const view = { id: bound, userId: "bea", state: "active", keyThumbprint };
      expect(await adminJson("badge", "rebind", bound)).toMatchObject(view);
      const shown = jsonObject.parse(await adminJson("badge", "show", bound));
      const hours = (Date.parse(String(shown.rebindUntil)) - opened) / 3_600_000;
      expect(hours).toBeGreaterThan(23.9);
      expect(hours).toBeLessThan(24.1);
      expect((await admin("badge", "rebind", bound)).stdout).toContain(`Until then the key ${keyThumbprint} works.`);
      expect(await adminJson("badge", "rebind", unbound)).toMatchObject({
        id: unbound,
        userId: "ben",
        state: "active",
      });
      expect(await adminJson("badge", "show", unbound)).toMatchObject({ keyThumbprint: null });
    },
    LIMIT,
  );

  it(
    "a past end expires a badge now, and a later one or none restores its state",
    async () => {
      const number = await issue("expired-phone", "carol");
      const past = { id: number, userId: "carol", state: "expired", expiresAt: "2020-01-31T17:00:00.000Z" };
      expect(await adminJson("badge", "expire", number, "--at", "2020-01-31T18:00:00+01:00")).toMatchObject(past);
      expect((await logIn("expired-phone", "carol")).outcome).toBe("EXPIRED_BADGE");
      expect(await refusal("badge", "suspend", number)).toContain(`Ended badge: ${number} is expired.`);
      const later = { id: number, userId: "carol", state: "active", expiresAt: "2099-01-01T00:00:00.000Z" };
      expect(await adminJson("badge", "expire", number, "--at", "2099-01-01T00:00:00Z")).toMatchObject(later);
      expect(await adminJson("badge", "show", number)).toMatchObject({
        state: "active",
        expiresAt: "2099-01-01T00:00:00.000Z",
      });
      expect((await logIn("expired-phone", "carol")).status).toBe(200);
      const text = await admin("badge", "expire", number, "--at", "2098-01-01T00:00:00Z");
      expect(text.stdout).toBe(`Badge ${number} is active, and ends at 2098-01-01T00:00:00.000Z.\n`);
      const endless = { id: number, userId: "carol", state: "active" };
      const unending = await adminJson("badge", "expire", number, "--at", "never");
      expect(unending).toMatchObject(endless);
      expect(unending).not.toHaveProperty("expiresAt");
      for (const wrong of ["tomorrow", "2099-01-01T00:00:00", "2099-01-01", ""]) {
        expect(await refusal("badge", "expire", number, "--at", wrong)).toContain("Give a date-time with a zone");
      }
      expect(await refusal("badge", "expire", number)).toContain("Required option '--at <time>' not specified");
      expect((await server(`/v1/badges/${number}`)).body).toEqual(unending);
    },
    LIMIT,
  );

  it(
    "a number that is free, only reserved or in no range is an unknown badge",
    async () => {
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
      const { body } = await call("POST", "/v1/invitation", { udid: "server" }, { expiresAt });
      const reserved = String(body.badgeId);
      for (const [command, number, ...options] of [
        ["suspend", reserved],
        ["revoke", reserved],
        ["resume", String(unusedNumber)],
        ["expire", String(unusedNumber), "--at", "never"],
      ] as const) {
        expect(await refusal("badge", command, number, ...options)).toContain(`Unknown badge: ${number} is not issued`);
      }
      expect(await refusal("badge", "revoke", "007")).toContain("Give a whole number");
      expect(await adminJson("badge", "show", reserved)).toMatchObject({ state: "reserved" });
    },
    LIMIT,
  );
});

describe("user block, unblock and show do what the routes do (contract section 12)", () => {
  it(
    "blocking prints the badges that it revoked, and the user gets no new ones",
    async () => {
      const { applicationId } = application;
      const numbers = [await issue("dora-phone", "dora"), await issue("dora-tablet", "dora")];
      const ended = await issue("dora-watch", "dora");
      await adminJson("badge", "revoke", ended);
      expect(await adminJson("user", "show", applicationId, "dora")).toEqual({ userId: "dora", blocked: false });
      expect(await adminJson("user", "block", applicationId, "dora")).toEqual({
        ...{ userId: "dora", blocked: true },
        revoked: numbers,
      });
      expect((await server("/v1/users/dora")).body).toEqual({ userId: "dora", blocked: true });
      expect((await logIn("dora-phone", "dora")).outcome).toBe("REVOKED_BADGE");
      expect((await logIn("dora-new-phone", "dora")).outcome).toBe("BLOCKED_USER");
      const again = await admin("user", "block", applicationId, "dora");
      expect(again.stdout).toBe("User dora is blocked: no new badges. There was no badge to revoke.\n");
      const shown = await admin("user", "show", applicationId, "dora");
      expect(shown.stdout).toBe("User dora is blocked: no new badges.\n");

      expect(await adminJson("user", "unblock", applicationId, "dora")).toEqual({
        ...{ userId: "dora", blocked: false },
        revoked: [],
      });
      expect((await logIn("dora-new-phone", "dora")).status).toBe(201);
      expect((await logIn("dora-phone", "dora")).outcome).toBe("REVOKED_BADGE");
    },
    LIMIT,
  );

  it(
    "prints the numbers as text too, and blocks a user without any badge",
    async () => {
      const { applicationId } = application;
      const number = await issue("eve-phone", "eve");
      const blocked = await admin("user", "block", applicationId, "eve");
      expect(blocked).toEqual({
        ...{ code: 0, stderr: "" },
        stdout: `User eve is blocked: no new badges. Revoked 1 badge:\n  ${number}\n`,
      });
      expect(await adminJson("user", "block", applicationId, "nobody-yet")).toMatchObject({
        blocked: true,
        revoked: [],
      });
      expect((await logIn("a-first-phone", "nobody-yet")).outcome).toBe("BLOCKED_USER");
    },
    LIMIT,
  );

  it(
    "refuses unknown applications and malformed user IDs",
    async () => {
      const { applicationId } = application;
      for (const command of ["block", "unblock", "show"]) {
        expect(await refusal("user", command, "app_00000000000000000000", "alice")).toContain(
          "There is no application",
        );
        expect(await refusal("user", command, applicationId, "..")).toContain('".." does not fit <user>.');
      }
      expect(await refusal("user", "block", applicationId)).toContain("Missing required argument 'user'");
    },
    LIMIT,
  );
});

describe("user erase does what the route does (contract section 24)", () => {
  it(
    "revokes the user's badges and prints the name that takes the user's place; again, there is none",
    async () => {
      const { applicationId } = application;
      const number = await issue("gil-phone", "gil");
      const erased = await adminJson("user", "erase", applicationId, "gil");
      expect(erased).toEqual({ userId: expect.stringMatching(/^erased:/), erased: 1 });
      const { userId } = jsonObject.parse(erased);
      expect(await adminJson("badge", "show", number)).toMatchObject({ state: "revoked", userId });
      expect(await adminJson("user", "erase", applicationId, "gil")).toMatchObject({ erased: 0 });
    },
    LIMIT,
  );
});

describe("history of what the script changes (contract section 23)", () => {
  it(
    "has one row for each change, with the administrator's name",
    async () => {
      const made = await apart.json("application", "create", "--name", "History");
      const { applicationId: id } = created.parse(made);
      const by = ["--actor", "Tom"];
      await apart.json("application", "update", id, "--name", "Other", ...by);
      for (const command of ["disable", "disable", "enable"]) await apart.json("application", command, id, ...by);
      for (const command of ["add", "promote", "retire"]) await apart.json("secret", command, id, ...by);
      await apart.json("secret", "add", id, "--console", "Ann", ...by);
      await apart.json("secret", "retire", id, "--console", "Ann", ...by);
      await apart.json("key", "rotate", id, ...by);
      await apart.refusal("secret", "promote", id);
      const rows = z
        .array(z.object({ action: z.string(), actor: z.unknown() }))
        .parse(await apart.json("history", id))
        .toReversed();
      expect(rows.map(({ action }) => action)).toEqual([
        "application:updated",
        "application:disabled",
        "application:enabled",
        ...["secret:added", "secret:promoted", "secret:retired", "secret:added", "secret:retired"],
        "key:rotated",
      ]);
      for (const { actor } of rows) expect(actor).toEqual({ kind: "administrator", name: "Tom" });
    },
    LIMIT,
  );
});

describe("stats --json (contract section 19)", () => {
  it(
    "prints what GET /v1/stats responds, with suspended, revoked and expired badges by the clock",
    async () => {
      const printed = jsonObject.parse(await adminJson("stats", application.applicationId));
      const { body } = await server("/v1/stats");
      expect({ ...printed, asOf: "" }).toEqual({ ...body, asOf: "" });
      expect(Object.keys(printed)).toEqual(Object.keys(body));
      expect(printed.badgesByState).toMatchObject({ revoked: expect.any(Number) });
      const { stdout } = await admin("stats", application.applicationId);
      for (const title of ["Badges by state", "Deliveries by state and last outcome"]) expect(stdout).toContain(title);
    },
    LIMIT,
  );

  it(
    "key list counts the badges that can still sign with a key",
    async () => {
      const [key] = z.array(jsonObject).parse(await adminJson("key", "list", application.applicationId));
      const { badgesByState } = jsonObject.parse(await adminJson("stats", application.applicationId));
      const { active, suspended, expired } = z
        .object({ active: z.number(), suspended: z.number(), expired: z.number() })
        .parse(badgesByState);
      expect(key?.badges).toBe(active + suspended + expired);
    },
    LIMIT,
  );
});

describe("--events of application create and update (contract section 18)", () => {
  it(
    "chooses the events, which application show and list print; by default only badge:created",
    async () => {
      const make = async (...words: string[]) =>
        created.parse(await apart.json("application", "create", "--name", "Events", ...words)).applicationId;
      const events = async (id: string) => jsonObject.parse(await apart.json("application", "show", id)).events;
      const plain = await make();
      expect(await events(plain)).toEqual(["badge:created"]);
      const chosen = await make("--events", "badge:revoked, badge:created,badge:revoked");
      expect(await events(chosen)).toEqual(["badge:created", "badge:revoked"]);
      const updated = await apart.json(
        "application",
        "update",
        plain,
        "--events",
        "badge:suspended,invitation:expired",
      );
      expect(updated).toMatchObject({ events: ["badge:suspended", "invitation:expired"] });
      const shown = await apart.admin("application", "show", plain);
      expect(shown.stdout).toMatch(/^ {2}Events +badge:suspended, invitation:expired$/m);
      const listed = z.array(jsonObject).parse(await apart.json("application", "list"));
      expect(listed.find(({ applicationId }) => applicationId === chosen)?.events).toEqual([
        "badge:created",
        "badge:revoked",
      ]);

      const error = await apart.refusal(
        "application",
        "update",
        plain,
        "--name",
        "New",
        "--events",
        "badge:created,badge:gone",
      );
      expect(error).toContain(
        'Unknown: "badge:gone". The events are badge:created, badge:suspended, badge:resumed, badge:revoked, ' +
          "badge:expired, badge:replaced, invitation:revoked, invitation:expired",
      );
      expect(await apart.refusal("application", "create", "--name", "X", "--events", "")).toContain('Unknown: ""');
      expect(jsonObject.parse(await apart.json("application", "show", plain))).toMatchObject({
        name: "Events",
        events: ["badge:suspended", "invitation:expired"],
      });
    },
    LIMIT,
  );

  it(
    "records an event of the script's change in its transaction, with the badge and its change number",
    async () => {
      const url = "http://localhost:9/hooks";
      await adminJson(
        ...["application", "update", application.applicationId],
        ...["--webhook-url", url, "--events", "badge:suspended,badge:revoked"],
      );
      const number = await issue("told-phone", "frank");
      await adminJson("badge", "suspend", number);
      await adminJson("badge", "resume", number);
      await adminJson("user", "block", application.applicationId, "frank");
      const events = z
        .array(z.object({ id: z.string(), event: z.string() }))
        .parse(await adminJson("webhook", "list", application.applicationId));
      expect(events.map(({ event }) => event)).toEqual(["badge:revoked", "badge:suspended"]);
      const shown = jsonObject.parse(await adminJson("webhook", "show", events[0]?.id ?? ""));
      expect(shown.payload).toMatchObject({
        event: "badge:revoked",
        data: { id: number, userId: "frank", state: "revoked", change: await changeOf(number) },
      });
    },
    LIMIT,
  );
});

describe("reconcile (contract section 21)", () => {
  it(
    "says that D1 and the allocator agree; or that something is missing, until the loss of that is accepted",
    async () => {
      const { applicationId: id } = application;
      await issue("reconciled-phone", "victor");
      expect(await adminJson("reconcile", id)).toMatchObject({ applicationId: id, result: "level", applied: 0 });
      expect(await refusal("reconcile", id, "--skip", "3")).toContain("--accept-loss");
      const isOurs = eq(position.applicationId, id);
      await service.database.run((orm) =>
        orm.update(position).set({ sequence: 1, entry: "of another timeline" }).where(isOurs),
      );
      const found = await admin("reconcile", id, "--json");
      expect(found.code).toBe(1);
      expect(JSON.parse(found.stdout)).toMatchObject({ applicationId: id, result: "gap", d1: 1 });
      expect(found.stderr).toContain(`reconcile ${id} --accept-loss`);
      const accepted = await adminJson("reconcile", id, "--accept-loss", "--skip", "3");
      expect(accepted).toMatchObject({ result: "loss-accepted", d1: 1, skipped: 3 });
      expect(await adminJson("reconcile", id)).toMatchObject({ result: "level" });
      expect((await logIn("later-phone", "walter")).status).toBe(201);
    },
    LIMIT,
  );
});
