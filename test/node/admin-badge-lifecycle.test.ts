import { eq } from "drizzle-orm";
import { beforeAll, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { DeviceClient, type ProofKey, webCryptoProofKey } from "../../src/client/index.ts";
import { applicationHead } from "../../src/shared/schema.ts";
import { type Harness, startHarness } from "./support/harness.ts";
import { commandsOf } from "./support/script.ts";

let service: Harness;
/** Keeps the order of the keys, which is part of what is checked. */
const jsonObject = z.record(z.string(), z.unknown());

const { admin, create, json, refusal } = commandsOf((...words) => service.admin(...words));

beforeAll(async () => {
  vi.stubEnv("WRANGLER_LOG", "error");
  service = await startHarness();
});

const phone = (udid: string, options: { applicationId?: string; proofKey?: ProofKey } = {}) => {
  const { origin: baseUrl, applicationId } = service;
  return new DeviceClient({ baseUrl, applicationId, udid, maxTries: 1, ...options });
};

/** @returns whether there is a badge, or the error's code */
const outcomeOf = (of: DeviceClient, userId: string): Promise<unknown> =>
  of.requestBadge({ userId }).then(
    () => "badge",
    (error) => error.code,
  );
const logIn = (udid: string, userId: string) => outcomeOf(phone(udid), userId);
const issue = async (udid: string, userId: string) => (await phone(udid).requestBadge({ userId })).badgeId;

describe("badge suspend, resume, revoke and expire do what the routes do (contract section 12)", () => {
  it("badge suspend, resume and revoke take effect at once, print the badge, and refuse what is final", async () => {
    const number = await issue("suspended-phone", "alice");
    const suspended = await json("badge", "suspend", number);
    expect(suspended).toMatchObject({ id: number, userId: "alice", state: "suspended" });
    expect(await service.server.getBadge(number)).toMatchObject(jsonObject.parse(suspended));
    expect(await logIn("suspended-phone", "alice")).toBe("SUSPENDED_BADGE");
    expect(await json("badge", "resume", number)).toMatchObject({ id: number, userId: "alice", state: "active" });
    const text = await admin("badge", "suspend", number);
    expect(text).toEqual({ code: 0, stderr: "", stdout: `Badge ${number} is suspended.\n` });
    expect(await json("badge", "revoke", number)).toMatchObject({ id: number, userId: "alice", state: "revoked" });
    expect(await logIn("suspended-phone", "alice")).toBe("REVOKED_BADGE");
    const final = `Ended badge: ${number} is revoked, which is final.\n`;
    expect(await refusal("badge", "resume", number)).toBe(final);
    const ofBadge = z.array(jsonObject).parse(await json("history", service.applicationId, "--badge", number));
    expect(ofBadge.map(({ action }) => action)).toEqual(expect.arrayContaining(["badge:revoked", "badge:suspended"]));
    await issue("other-phone", "ada");
    const ofUser = z.array(jsonObject).parse(await json("history", service.applicationId, "--user", "ada"));
    expect(ofUser.map(({ action }) => action)).not.toContain("badge:revoked");
  });

  it("badge rebind lets a bound badge be bound to another key for a day (contract section 15)", async () => {
    const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]);
    const proofKey = await webCryptoProofKey(pair);
    const { badgeId: bound } = await phone("bound-phone", { proofKey }).requestBadge({ userId: "bea" });
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
  });

  it("badge expire with a past time ends a badge now; a later time or never restores its state", async () => {
    const number = await issue("expired-phone", "carol");
    const expire = (at: string) => json("badge", "expire", number, "--at", at);
    const past = { id: number, userId: "carol", state: "expired", expiresAt: "2020-01-31T17:00:00.000Z" };
    expect(await expire("2020-01-31T18:00:00+01:00")).toMatchObject(past);
    expect(await logIn("expired-phone", "carol")).toBe("EXPIRED_BADGE");
    const later = { id: number, userId: "carol", state: "active", expiresAt: "2099-01-01T00:00:00.000Z" };
    expect(await expire("2099-01-01T00:00:00Z")).toMatchObject(later);
    const text = await admin("badge", "expire", number, "--at", "2098-01-01T00:00:00Z");
    expect(text.stdout).toBe(`Badge ${number} is active, and ends at 2098-01-01T00:00:00.000Z.\n`);
    const unending = await expire("never");
    expect(unending).toMatchObject({ id: number, userId: "carol", state: "active" });
    expect(unending).not.toHaveProperty("expiresAt");
  });
});

describe("user block, unblock, erase and show do what the routes do (contract sections 12 and 24)", () => {
  const user = (command: string, name: string) => ["user", command, service.applicationId, name] as const;

  it("user block prints the badges that it revoked, and the user gets no new ones", async () => {
    const number = await issue("dora-phone", "dora");
    await json("badge", "revoke", await issue("dora-watch", "dora"));
    expect(await json(...user("show", "dora"))).toEqual({ userId: "dora", blocked: false });
    expect(await json(...user("block", "dora"))).toEqual({ userId: "dora", blocked: true, revoked: [number] });
    expect(await service.server.getUser("dora")).toEqual({ userId: "dora", blocked: true });
    expect(await logIn("dora-new-phone", "dora")).toBe("BLOCKED_USER");
    expect((await admin(...user("show", "dora"))).stdout).toBe("User dora is blocked: no new badges.\n");
    expect(await json(...user("unblock", "dora"))).toEqual({ userId: "dora", blocked: false, revoked: [] });
    const again = await issue("dora-new-phone", "dora");
    const stdout = `User dora is blocked: no new badges. Revoked 1 badge:\n  ${again}\n`;
    expect(await admin(...user("block", "dora"))).toEqual({ code: 0, stderr: "", stdout });
  });

  it("user erase revokes the user's badges and prints the user's new ID; user show still knows the block", async () => {
    const number = await issue("gil-phone", "gil");
    const erased = await json(...user("erase", "gil"));
    expect(erased).toEqual({ userId: expect.stringMatching(/^erased:/), erased: 1 });
    expect(await json("badge", "show", number)).toMatchObject({
      state: "revoked",
      userId: jsonObject.parse(erased).userId,
    });
    await json(...user("block", "gil"));
    await json(...user("erase", "gil"));
    expect(await json(...user("show", "gil"))).toEqual({ userId: "gil", blocked: true });
    expect(await refusal("user", "block", "app_00000000000000000000", "gil")).toContain("There is no application");
  });
});

describe("stats --json (contract section 19)", () => {
  it("stats --json prints the response of GET /v1/stats, and key list counts the badges that can still sign with each key", async () => {
    const { applicationId } = service;
    const printed = jsonObject.parse(await json("stats", applicationId));
    const body = await service.server.getStatistics();
    expect({ ...printed, asOf: "" }).toEqual({ ...body, asOf: "" });
    expect(Object.keys(printed)).toEqual(Object.keys(body));
    const { stdout } = await admin("stats", applicationId);
    const devices = ["device model", "operating system", "version of the operating system", "version of the SDK"];
    const titles = ["state", ...devices].map((kind) => `Badges by ${kind}`);
    for (const title of [...titles, "Deliveries by state and last outcome"]) expect(stdout).toContain(title);
    const { active, suspended, expired } = z.record(z.string(), z.number()).parse(printed.badgesByState);
    const badges = Number(active) + Number(suspended) + Number(expired);
    expect(await json("key", "list", applicationId)).toMatchObject([{ badges }]);
  });
});

describe("reconcile (contract section 21)", () => {
  it("reconcile says that the log lacks D1's entry and lists rows that differ, and fails, until --republish replaces D1's rows", async () => {
    const { applicationId: id } = service;
    const number = await issue("altered-phone", "wanda");
    const alter = "UPDATE badge SET name = 'Somebody' WHERE number = ?";
    await service.database.run((_, d1) => d1.prepare(alter).bind(Number(number)).run());
    const differing = await admin("reconcile", id, "--verify", "--json");
    expect(differing).toMatchObject({ code: 1, stderr: expect.stringMatching(/^[^\n]* differ in 1 row: [^\n]*\n$/) });
    const first = [{ table: "badge", key: Number(number), problem: "different", columns: ["name"] }];
    expect(JSON.parse(differing.stdout)).toMatchObject({ state: "in-sync", differences: { count: 1, first } });
    expect((await admin("reconcile", id, "--verify")).stdout).toContain(`badge ${number}: different (name)\n`);

    const elsewhere = { sequence: 1, entry: "of another timeline" };
    const isOurs = eq(applicationHead.applicationId, id);
    await service.database.run((orm) => orm.update(applicationHead).set(elsewhere).where(isOurs));
    const unknown = await admin("reconcile", id, "--json");
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining(`reconcile ${id} --republish`) });
    expect(JSON.parse(unknown.stdout)).toMatchObject({ applicationId: id, state: "database-unknown", d1: 1 });
    expect(await logIn("later-phone", "walter")).toBe("UNAVAILABLE");
    expect(await json("reconcile", id, "--republish")).toMatchObject({ state: "in-sync", republished: true });
    const { stdout } = await admin("reconcile", id, "--verify");
    expect(stdout).toMatch(/^D1 has everything that the allocator has, up to entry [\d,]+\.$/m);
    expect(stdout).toContain("Every row is the same on both sides.");
    expect(await json("badge", "show", number)).toMatchObject({ name: null, userId: "wanda" });
    expect(await logIn("later-phone", "walter")).toBe("badge");
  });

  it("reconcile --skip leaves out fresh numbers, which are then never issued", async () => {
    const { applicationId: id } = await create("--first", "800000201", "--last", "800000202");
    expect((await admin("reconcile", id, "--skip", "1")).stdout).toContain("Skipped 1 fresh number.\n");
    expect(await outcomeOf(phone("last-phone", { applicationId: id }), "last")).toBe("badge");
    expect(await outcomeOf(phone("late-phone", { applicationId: id }), "late")).toBe("NUMBERS_EXHAUSTED");
  });
});
