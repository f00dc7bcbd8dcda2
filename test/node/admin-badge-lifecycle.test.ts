import { eq } from "drizzle-orm";
import { beforeAll, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { createDpopProof, webCryptoProofKey } from "../../src/client/index.ts";
import { applicationHead } from "../../src/shared/schema.ts";
import { type Harness, startHarness } from "./support/harness.ts";
import { commandsOf } from "./support/script.ts";

let service: Harness;
let application: Awaited<ReturnType<typeof create>>;

/** Keeps the order of the keys, which is part of what is checked. */
const jsonObject = z.record(z.string(), z.unknown());

const { admin, create, json, refusal } = commandsOf((...words) => service.admin(...words));

beforeAll(async () => {
  vi.stubEnv("WRANGLER_LOG", "error");
  service = await startHarness();
  application = await create("--first", "800000001", "--last", "800000100");
});

async function call(method: string, path: string, headers: Record<string, string>, body?: unknown) {
  const response = await fetch(new URL(path, service.origin), {
    method,
    headers: { applicationid: application.applicationId, ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const answer = jsonObject.parse(await response.json());
  return { body: answer, outcome: String(answer.error ?? response.status) };
}

const logIn = (udid: string, userId: string) => call("POST", "/v1/badge", { udid }, { userId });
const sign = (udid: string) => call("POST", "/v1/badge/sign", { udid }, { base64: "aGVsbG8=" });
const server = (path: string) => call("GET", path, { applicationsecret: application.applicationSecret });

async function issue(udid: string, userId: string): Promise<string> {
  return z.string().parse((await logIn(udid, userId)).body.badgeId);
}

/** From a device with a key of its own, to which the badge is bound. */
async function logInWithKey(udid: string, userId: string) {
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]);
  const body = { userId };
  const proof = await createDpopProof({
    ...{ key: await webCryptoProofKey(pair), applicationId: application.applicationId, udid },
    ...{ method: "POST", url: new URL("/v1/badge", service.origin).href, body: JSON.stringify(body) },
  });
  return call("POST", "/v1/badge", { udid, dpop: proof }, body);
}

describe("badge suspend, resume, revoke and expire do what the routes do (contract section 12)", () => {
  it("badge suspend and resume take effect at once, and print the badge", async () => {
    const number = await issue("suspended-phone", "alice");
    const suspended = await json("badge", "suspend", number);
    expect(suspended).toMatchObject({ id: number, userId: "alice", state: "suspended" });
    expect((await server(`/v1/badges/${number}`)).body).toEqual(suspended);
    expect((await logIn("suspended-phone", "alice")).outcome).toBe("SUSPENDED_BADGE");
    expect((await sign("suspended-phone")).outcome).toBe("SUSPENDED_BADGE");
    expect(await json("badge", "suspend", number)).toEqual(suspended);
    expect(await json("badge", "resume", number)).toMatchObject({ id: number, userId: "alice", state: "active" });
    expect((await sign("suspended-phone")).outcome).toBe("200");
    const text = await admin("badge", "suspend", number);
    expect(text).toEqual({ code: 0, stderr: "", stdout: `Badge ${number} is suspended.\n` });
  });

  it("a revoked badge can be revoked again, and every other transition is refused", async () => {
    const number = await issue("revoked-phone", "bob");
    const revoked = { id: number, userId: "bob", state: "revoked" };
    expect(await json("badge", "revoke", number)).toMatchObject(revoked);
    expect((await logIn("revoked-phone", "bob")).outcome).toBe("REVOKED_BADGE");
    expect(await json("badge", "revoke", number)).toMatchObject(revoked);
    for (const [step, ...options] of [["suspend"], ["resume"], ["expire", "--at", "never"], ["rebind"]] as const) {
      const final = `Ended badge: ${number} is revoked, which is final.\n`;
      expect(await refusal("badge", step, number, ...options)).toBe(final);
    }
    expect((await server(`/v1/badges/${number}`)).body).toMatchObject(revoked);
  });

  it("badge rebind lets a bound badge be bound to another key for a day, and leaves an unbound one as it is (contract section 15)", async () => {
    const bound = z.string().parse((await logInWithKey("bound-phone", "bea")).body.badgeId);
    const unbound = await issue("plain-phone", "ben");
    const { keyThumbprint } = jsonObject.parse(await json("badge", "show", bound));
    expect(keyThumbprint).toMatch(/^[\w-]{43}$/);
    const opened = Date.now();
    expect(await json("badge", "rebind", bound)).toMatchObject({ id: bound, state: "active", keyThumbprint });
    const shown = jsonObject.parse(await json("badge", "show", bound));
    const hours = (Date.parse(String(shown.rebindUntil)) - opened) / 3_600_000;
    expect(hours).toBeGreaterThan(23.9);
    expect(hours).toBeLessThan(24.1);
    expect((await admin("badge", "show", bound)).stdout).toMatch(/^ {2}May be rebound until +\d{4}-/m);
    expect((await admin("badge", "rebind", bound)).stdout).toContain(`Until then the key ${keyThumbprint} works.`);
    expect(await json("badge", "rebind", unbound)).toMatchObject({ id: unbound, userId: "ben", state: "active" });
    expect(await json("badge", "show", unbound)).toMatchObject({ keyThumbprint: null });
  });

  it("badge expire with a past time ends a badge now; a later time or never restores its state", async () => {
    const number = await issue("expired-phone", "carol");
    const expire = (at: string) => json("badge", "expire", number, "--at", at);
    const past = { id: number, userId: "carol", state: "expired", expiresAt: "2020-01-31T17:00:00.000Z" };
    expect(await expire("2020-01-31T18:00:00+01:00")).toMatchObject(past);
    expect((await logIn("expired-phone", "carol")).outcome).toBe("EXPIRED_BADGE");
    expect(await refusal("badge", "suspend", number)).toContain(`Ended badge: ${number} is expired.`);
    const later = { id: number, userId: "carol", state: "active", expiresAt: "2099-01-01T00:00:00.000Z" };
    expect(await expire("2099-01-01T00:00:00Z")).toMatchObject(later);
    expect((await logIn("expired-phone", "carol")).outcome).toBe("200");
    const text = await admin("badge", "expire", number, "--at", "2098-01-01T00:00:00Z");
    expect(text.stdout).toBe(`Badge ${number} is active, and ends at 2098-01-01T00:00:00.000Z.\n`);
    const unending = await expire("never");
    expect(unending).toMatchObject({ id: number, userId: "carol", state: "active" });
    expect(unending).not.toHaveProperty("expiresAt");
    expect((await server(`/v1/badges/${number}`)).body).toEqual(unending);
  });

  it("a badge command on a number that is only reserved, or in no range, fails with an unknown badge", async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const { body } = await call("POST", "/v1/invitation", { udid: "server" }, { expiresAt });
    for (const number of [String(body.badgeId), String(application.lastNumber + 1)]) {
      expect(await refusal("badge", "revoke", number)).toContain(`Unknown badge: ${number} is not issued`);
    }
  });
});

describe("user block, unblock, erase and show do what the routes do (contract sections 12 and 24)", () => {
  const user = (command: string, name: string) => ["user", command, application.applicationId, name] as const;

  it("user block prints the badges that it revoked, and the user gets no new ones", async () => {
    const numbers = [await issue("dora-phone", "dora"), await issue("dora-tablet", "dora")];
    await json("badge", "revoke", await issue("dora-watch", "dora"));
    expect(await json(...user("show", "dora"))).toEqual({ userId: "dora", blocked: false });
    expect(await json(...user("block", "dora"))).toEqual({ userId: "dora", blocked: true, revoked: numbers });
    expect((await server("/v1/users/dora")).body).toEqual({ userId: "dora", blocked: true });
    expect((await logIn("dora-phone", "dora")).outcome).toBe("REVOKED_BADGE");
    expect((await logIn("dora-new-phone", "dora")).outcome).toBe("BLOCKED_USER");
    expect((await admin(...user("show", "dora"))).stdout).toBe("User dora is blocked: no new badges.\n");
    expect(await json(...user("unblock", "dora"))).toEqual({ userId: "dora", blocked: false, revoked: [] });
    expect((await logIn("dora-new-phone", "dora")).outcome).toBe("201");
    expect((await logIn("dora-phone", "dora")).outcome).toBe("REVOKED_BADGE");
  });

  it("user show says that an erased user is still blocked, as GET /v1/users/{id} does", async () => {
    await issue("olga-phone", "olga");
    await json(...user("block", "olga"));
    await json(...user("erase", "olga"));
    expect((await server("/v1/users/olga")).body).toEqual({ userId: "olga", blocked: true });
    expect(await json(...user("show", "olga"))).toEqual({ userId: "olga", blocked: true });
  });

  it("user block says in its text which badges it revoked, or that there were none", async () => {
    const number = await issue("eve-phone", "eve");
    const blocked = (rest: string) => ({
      code: 0,
      stderr: "",
      stdout: `User eve is blocked: no new badges. ${rest}\n`,
    });
    expect(await admin(...user("block", "eve"))).toEqual(blocked(`Revoked 1 badge:\n  ${number}`));
    expect(await admin(...user("block", "eve"))).toEqual(blocked("There was no badge to revoke."));
  });

  it("user erase revokes the user's badges and prints the user's new ID; repeated, it finds no badge", async () => {
    const number = await issue("gil-phone", "gil");
    const erased = await json(...user("erase", "gil"));
    expect(erased).toEqual({ userId: expect.stringMatching(/^erased:/), erased: 1 });
    const { userId } = jsonObject.parse(erased);
    expect(await json("badge", "show", number)).toMatchObject({ state: "revoked", userId });
    expect(await json(...user("erase", "gil"))).toMatchObject({ erased: 0 });
  });

  it("user block, unblock, erase and show refuse an unknown application", async () => {
    for (const command of ["block", "unblock", "erase", "show"]) {
      const unknown = await refusal("user", command, "app_00000000000000000000", "alice");
      expect(unknown).toContain("There is no application");
    }
  });
});

describe("stats --json (contract section 19)", () => {
  it("stats --json prints the response of GET /v1/stats, and key list counts the badges that can still sign with each key", async () => {
    const { applicationId } = application;
    const printed = jsonObject.parse(await json("stats", applicationId));
    const { body } = await server("/v1/stats");
    expect({ ...printed, asOf: "" }).toEqual({ ...body, asOf: "" });
    expect(Object.keys(printed)).toEqual(Object.keys(body));
    const { stdout } = await admin("stats", applicationId);
    for (const title of ["Badges by state", "Deliveries by state and last outcome"]) expect(stdout).toContain(title);
    const { active, suspended, expired } = z.record(z.string(), z.number()).parse(printed.badgesByState);
    const badges = Number(active) + Number(suspended) + Number(expired);
    expect(await json("key", "list", applicationId)).toMatchObject([{ badges }]);
  });
});

describe("--events of application update (contract section 18)", () => {
  it("the script's changes create the subscribed events in their transaction, with the badge and its change number", async () => {
    const { applicationId } = application;
    const words = ["--webhook-url", "http://localhost:9/hooks", "--events", "badge:suspended,badge:revoked"];
    await json("application", "update", applicationId, ...words);
    const number = await issue("told-phone", "frank");
    await json("badge", "suspend", number);
    await json("badge", "resume", number);
    await json("user", "block", applicationId, "frank");
    const listed = await json("webhook", "list", applicationId);
    const events = z.array(z.object({ id: z.string(), event: z.string() })).parse(listed);
    expect(events.map(({ event }) => event)).toEqual(["badge:revoked", "badge:suspended"]);
    const { changes } = (await server("/v1/changes?per_page=1000")).body;
    const { change } =
      z
        .array(jsonObject)
        .parse(changes)
        .find(({ id }) => id === number) ?? {};
    const data = { id: number, userId: "frank", state: "revoked", change };
    const shown = await json("webhook", "show", events[0]?.id ?? "");
    expect(shown).toMatchObject({ payload: { event: "badge:revoked", data } });
  });
});

describe("reconcile (contract section 21)", () => {
  const entryOfD1 = async () => {
    const { applicationId: id } = application;
    const [head] = await service.database.run((orm) =>
      orm.select().from(applicationHead).where(eq(applicationHead.applicationId, id)),
    );
    return head?.sequence;
  };

  it("reconcile --verify prints the entry that the allocator and D1 are at, and compares every row", async () => {
    const { applicationId: id } = application;
    const before = await entryOfD1();
    const printed = jsonObject.parse(await json("reconcile", id));
    const level = { state: "in-sync", sent: 0, republished: false, skipped: 0, differences: null };
    expect(printed).toMatchObject({ applicationId: id, ...level, logSince: expect.stringMatching(/^\d{4}-/) });
    expect(printed.allocator).toBe(printed.d1);
    expect(Number(printed.d1)).toBeGreaterThanOrEqual(Number(before));
    expect(await json("reconcile", id, "--verify")).toMatchObject({ ...level, differences: { count: 0, first: [] } });
    const { code, stdout, stderr } = await admin("reconcile", id, "--verify");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^D1 and the allocator are at entry [\d,]+: D1 lacked nothing\.$/m);
    expect(stdout).toContain("Every row is the same on both sides.");
  });

  it("reconcile --verify lists rows that differ and fails, until --republish replaces D1's rows with the allocator's", async () => {
    const { applicationId: id } = application;
    const number = await issue("altered-phone", "wanda");
    const alter = "UPDATE badge SET name = 'Somebody' WHERE number = ?";
    await service.database.run((_, d1) => d1.prepare(alter).bind(Number(number)).run());
    const found = await admin("reconcile", id, "--verify", "--json");
    expect(found.code).toBe(1);
    expect(found.stderr).toMatch(/^[^\n]* differ in 1 row: [^\n]*\n$/);
    expect(found.stderr).toContain(`reconcile ${id} --republish`);
    const first = [{ table: "badge", key: Number(number), problem: "different", columns: ["name"] }];
    expect(JSON.parse(found.stdout)).toMatchObject({ state: "in-sync", differences: { count: 1, first } });
    expect((await admin("reconcile", id, "--verify")).stdout).toContain(`badge ${number}: different (name)\n`);
    expect(await json("reconcile", id, "--republish")).toMatchObject({ state: "in-sync", republished: true });
    expect(await json("reconcile", id, "--verify")).toMatchObject({ differences: { count: 0 } });
    expect(await json("badge", "show", number)).toMatchObject({ name: null, userId: "wanda" });
  });

  it("reconcile says that the log lacks D1's entry, and overwrites nothing without --republish", async () => {
    const { applicationId: id } = application;
    const elsewhere = { sequence: 1, entry: "of another timeline" };
    await service.database.run((orm) =>
      orm.update(applicationHead).set(elsewhere).where(eq(applicationHead.applicationId, id)),
    );
    const found = await admin("reconcile", id, "--json");
    expect(found.code).toBe(1);
    expect(JSON.parse(found.stdout)).toMatchObject({ applicationId: id, state: "database-unknown", d1: 1, sent: 0 });
    expect(found.stderr).toMatch(/^D1 is older than the allocator's log: [^\n]*\n$/);
    expect(found.stderr).toContain(`reconcile ${id} --republish`);
    expect((await logIn("later-phone", "walter")).outcome).toBe("UNAVAILABLE");
    expect(await entryOfD1()).toBe(1);
    expect(await json("reconcile", id, "--republish")).toMatchObject({ state: "in-sync", republished: true });
    expect(await json("reconcile", id, "--verify")).toMatchObject({ state: "in-sync", differences: { count: 0 } });
    expect((await logIn("later-phone", "walter")).outcome).toBe("201");
  });

  it("reconcile --skip leaves out fresh numbers, which are then never issued", async () => {
    const { applicationId: id } = await create("--first", "800000201", "--last", "800000206");
    const outcomeOf = async (udid: string) =>
      (await call("POST", "/v1/badge", { applicationid: id, udid }, { userId: udid })).outcome;
    expect(await outcomeOf("early-phone")).toBe("201");
    expect(await json("reconcile", id, "--skip", "3")).toMatchObject({ state: "in-sync", skipped: 3 });
    expect((await admin("reconcile", id, "--skip", "1")).stdout).toContain("Skipped 1 fresh number.\n");
    expect(await json("reconcile", id, "--verify")).toMatchObject({ skipped: 0, differences: { count: 0 } });
    expect(await outcomeOf("last-phone")).toBe("201");
    expect(await outcomeOf("late-phone")).toBe("NUMBERS_EXHAUSTED");
  });
});
