import { createHash } from "node:crypto";
import { eq, sql } from "drizzle-orm";
import { describe, expect, it, vi } from "vitest";
import { createApplication } from "../../src/admin/application/create.ts";
import { listSigningKeys, rotateSigningKey, rotationText, signingKeyTable } from "../../src/admin/key/commands.ts";
import type { Database } from "../../src/admin/platform/database.ts";
import { promoteSecret, retireConsoleSecret, retireSecret } from "../../src/admin/secret/changes.ts";
import { addDoorSecret, listDoorSecrets, retireDoorSecret } from "../../src/admin/secret/doors.ts";
import { addConsoleSecret, addSecret, listSecrets } from "../../src/admin/secret/secrets.ts";
import { type ApplicationId, applicationId as anyApplicationId } from "../../src/shared/identifiers.ts";
import { badge, consoleSecret, doorSecret, history, signingKey } from "../../src/shared/schema.ts";
import { interruptHomes } from "./support/homes.ts";
import { localHomes } from "./support/script.ts";

const { homes, database, submit } = await localHomes();

const create = () => createApplication(homes, submit, { name: "Test" });

const digestOf = (secret: string) => createHash("sha256").update(secret).digest("base64url");

/** Roles of the server's secrets and names of people, in the order of the list. */
const listed = async (id: ApplicationId) => (await listSecrets(database, id)).map(({ role, name }) => name ?? role);

const successes = (settled: readonly PromiseSettledResult<unknown>[]) =>
  settled.filter(({ status }) => status === "fulfilled");

/** A database in which something else happens right before one step. */
function interrupt(step: number, meanwhile: () => Promise<unknown>) {
  const interrupted = interruptHomes(step, homes, meanwhile);
  return { database: interrupted.homes.first.database, wasInterrupted: () => interrupted.steps() >= step };
}

describe("secrets (contract section 9)", () => {
  it("an application has at most two secrets: add, promote and retire change them without downtime, repeatedly", async () => {
    const { applicationId: id } = await create();
    await expect(promoteSecret(database, id)).rejects.toThrow("no added secret to promote");
    await expect(retireSecret(database, id, undefined)).rejects.toThrow("no previous secret to retire");
    // Several administrators at once.
    const added = successes(await Promise.allSettled([1, 2, 3].map(() => addSecret(database, id))));
    expect(added).toHaveLength(1);
    expect(await listed(id)).toEqual(["current", "added"]);
    await expect(addSecret(database, id)).rejects.toThrow(`secret promote ${id}`);
    await expect(retireSecret(database, id, undefined)).rejects.toThrow("secret promote");
    await promoteSecret(database, id);
    expect(await listed(id)).toEqual(["previous", "current"]);
    await expect(addSecret(database, id)).rejects.toThrow(`secret retire ${id}`);
    await retireSecret(database, id, undefined);
    const [current] = await listSecrets(database, id);
    expect(current?.role).toBe("current");
    await expect(retireSecret(database, id, current?.secretId)).rejects.toThrow("is the current secret");
    await expect(retireSecret(database, id, "sec_other")).rejects.toThrow("has no secret sec_other");
    const { secretId } = await addSecret(database, id);
    const { secrets } = await retireSecret(database, id, secretId);
    expect(secrets).toMatchObject([{ secretId: current?.secretId, role: "current" }]);
  });

  type Change = (on: Database, id: ApplicationId, secretId: string) => Promise<unknown>;
  const promote: Change = (on, id) => promoteSecret(on, id);
  const retire: Change = (on, id, secretId) => retireSecret(on, id, secretId);

  it.each(
    [1, 2, 3, 4].flatMap((step) => [
      {
        ...{ what: "retired", change: retire, meanwhile: "promotion", other: promote, step },
        refusal: /is not retired: it was promoted meanwhile|is the current secret/,
        left: ["previous", "current"],
      },
      {
        ...{ what: "promoted", change: promote, meanwhile: "retirement", other: retire, step },
        refusal: /was retired meanwhile|There is no added secret/,
        left: ["current"],
      },
    ]),
  )(
    "are reported as $what only if they are, also with a $meanwhile right before step $step",
    async ({ change, other, step, refusal, left }) => {
      const { applicationId: id } = await create();
      const { secretId } = await addSecret(database, id);
      const racing = interrupt(step, () => other(database, id, secretId));
      const said = await change(racing.database, id, secretId).then(() => "done", String);
      if (!racing.wasInterrupted()) return expect(said).toBe("done");
      expect(said).toMatch(refusal);
      expect(await listed(id)).toEqual(left);
    },
  );
});

describe.each([
  {
    ...{ whom: "people", most: 50, table: consoleSecret, remove: retireConsoleSecret, role: "viewer" },
    ...{ stored: { role: "viewer" }, holder: { name: "North" } },
    add: (id: ApplicationId, name: string) => addConsoleSecret(database, id, { name, role: "viewer" }),
    list: async (id: ApplicationId) => (await listSecrets(database, id)).filter(({ name }) => name !== undefined),
  },
  {
    ...{ whom: "doors", most: 5000, table: doorSecret, remove: retireDoorSecret, role: "door" },
    ...{ stored: {}, holder: { door: "North" } },
    add: (id: ApplicationId, name: string) => addDoorSecret(database, id, name),
    list: (id: ApplicationId) => listDoorSecrets(database, id),
  },
])(
  "secrets for $whom (contract sections 19, 24 and 26)",
  ({ whom, most, table, remove, role, stored, holder, add, list }) => {
    it(`secrets for ${whom} are stored as a digest alone, which no sealing key opens, and the history has them (sections 9 and 23)`, async () => {
      const { applicationId } = await create();
      const { applicationSecret: secret, secretId: id, ...added } = await add(applicationId, "North");
      expect(secret).toMatch(/^bdss_[\w-]{43}$/);
      expect(added).toEqual({ applicationId, role, name: "North" });
      const rows = await database.run((orm) => orm.select().from(table).where(eq(table.id, id)));
      const createdAt = expect.any(Number);
      expect(rows).toEqual([{ applicationId, id, name: "North", digest: digestOf(secret), createdAt, ...stored }]);
      await remove(database, applicationId, "North");
      const noted = await database.run((orm) =>
        orm.select().from(history).where(eq(history.applicationId, applicationId)).orderBy(history.id),
      );
      expect(noted.map(({ action, detail }) => [action, JSON.parse(detail ?? "")])).toEqual([
        ["secret:added", { secretId: id, ...holder, ...stored }],
        ["secret:retired", { secretId: id, ...holder }],
      ]);
    });

    it(`an application has at most ${most} secrets for ${whom}, one per name, even if administrators add them at once`, async () => {
      const { applicationId: id } = await create();
      await database.run((orm) =>
        orm.run(sql`WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ${most - 2})
        INSERT INTO ${table} (application_id, name, id, digest, created_at)
        SELECT ${id}, 'Holder ' || n, 'sec_' || n, 'digest ' || n, 0 FROM place`),
      );
      const one = await Promise.allSettled([1, 2, 3].map(() => add(id, "Last but one")));
      expect(successes(one)).toHaveLength(1);
      await expect(add(id, "Last but one")).rejects.toThrow("already");
      const last = await Promise.allSettled(["A", "B", "C"].map((name) => add(id, name)));
      expect(successes(last)).toHaveLength(1);
      await expect(add(id, "D")).rejects.toThrow(`has ${most} secrets for ${whom}, which is the most`);
      expect(await list(id)).toHaveLength(most);
      await addSecret(database, id);
      const other = await create();
      await add(other.applicationId, "Holder 7");
      expect(await remove(database, id, "Holder 7")).toMatchObject({ secretId: "sec_7" });
      await expect(remove(database, id, "Holder 7")).rejects.toThrow("no secret for");
      expect(await list(other.applicationId)).toHaveLength(1);
      await add(id, "D");
    });

    it(`secrets for ${whom} that are given to a name while its old one is retired stay`, async () => {
      const { applicationId: id } = await create();
      await add(id, "North");
      let again = "";
      const other = interrupt(3, async () => {
        await remove(database, id, "North");
        again = (await add(id, "North")).secretId;
      });
      await remove(other.database, id, "North");
      expect(other.wasInterrupted()).toBe(true);
      expect(await list(id)).toMatchObject([{ name: "North", secretId: again }]);
    });
  },
);

describe("signing keys (contract section 10)", () => {
  it.each([
    { isUrgent: false, delays: [600] },
    { isUrgent: true, delays: [20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30] },
  ])(
    "keys sign from a time that the command says, whatever this computer's clock: urgent $isUrgent",
    async ({ isUrgent, delays }) => {
      const { applicationId } = await create();
      const before = Date.now();
      vi.useFakeTimers({ toFake: ["Date"], now: before + 7 * 3_600_000 });
      const { keyId, signsFrom } = await rotateSigningKey(database, applicationId, { isUrgent });
      vi.useRealTimers();
      const [key] = await listSigningKeys(database, applicationId);
      expect(key).toMatchObject({ keyId, signsFrom, current: false });
      const createdAt = Date.parse(key?.createdAt ?? "");
      expect(createdAt).toBeGreaterThan(before - 2000);
      expect(createdAt).toBeLessThanOrEqual(Date.now());
      expect(delays).toContain((Date.parse(signsFrom ?? "") - createdAt) / 1000);
    },
  );

  it("after a rotation new badges get the new key, and earlier badges keep theirs; the later of two rotations counts", async () => {
    const { applicationId, firstNumber: number } = await create();
    const [first] = await database.run((orm) =>
      orm.select().from(signingKey).where(eq(signingKey.applicationId, applicationId)),
    );
    const issued = { applicationId, signingKeyId: first?.id };
    await database.run((orm) =>
      orm.insert(badge).values([
        { ...issued, number, ordinal: 1 },
        { ...issued, number: number + 1, ordinal: 2 },
      ]),
    );
    const slow = await rotateSigningKey(database, applicationId, { isUrgent: false });
    const urgent = await rotateSigningKey(database, applicationId, { isUrgent: true });
    const states = async () =>
      (await listSigningKeys(database, applicationId)).map(({ keyId, badges, current, signsFrom }) => [
        ...[keyId, badges, current ? "current" : "", signsFrom === null ? "never signs" : "signs"],
      ]);
    expect(await states()).toEqual([
      [urgent.keyId, 0, "", "signs"],
      [slow.keyId, 0, "", "never signs"],
      [first?.kid, 2, "current", "signs"],
    ]);
    // As if its keys had been made ten minutes earlier.
    const signsFrom = sql`${signingKey.signsFrom} - 600000`;
    const isOurs = eq(signingKey.applicationId, applicationId);
    await database.run((orm) => orm.update(signingKey).set({ signsFrom }).where(isOurs));
    expect((await states()).map(([, , current]) => current)).toEqual(["current", "", ""]);
  });

  it("key rotate prints when the new key signs, and key list which one signs now and which is next, in 80 columns", () => {
    const [createdAt, signsFrom] = ["2026-11-22T00:10:05.000Z", "2026-11-22T00:20:05.000Z"];
    const rotated = { applicationId: anyApplicationId.parse("app_1"), keyId: "new", signsFrom };
    expect(rotationText(rotated, false)).toContain(
      "New badges are signed with it from 2026-11-22 00:20:05Z on. By then every cached copy of the key set has it.",
    );
    expect(rotationText(rotated, true)).toContain("Doors with an older copy of the key set refuse those signatures");
    const [newest, overtaken, current] = ["n".repeat(43), "o".repeat(43), "c".repeat(43)];
    const keys = [
      { keyId: newest, current: false, badges: 0, createdAt, signsFrom },
      { keyId: overtaken, current: false, badges: 0, createdAt, signsFrom: null },
      { keyId: current, current: true, badges: 999_999, createdAt, signsFrom: "2026-10-01T08:00:00.000Z" },
    ];
    const lines = signingKeyTable(keys).split("\n").slice(1);
    expect(lines.map((line) => line.replaceAll(/ {2,}/g, "  "))).toEqual([
      `${newest}  2026-11-22 00:20:05Z  next  0`,
      `${overtaken}  -  0`,
      `${current}  2026-10-01 08:00:00Z  now  999,999`,
    ]);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
  });
});
