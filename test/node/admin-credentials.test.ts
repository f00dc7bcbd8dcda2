import { createHash } from "node:crypto";
import { eq, sql } from "drizzle-orm";
import { describe, expect, it, vi } from "vitest";
import { createApplication } from "../../src/admin/application/create.ts";
import { listSigningKeys, rotateSigningKey, rotationText, signingKeyTable } from "../../src/admin/key/commands.ts";
import type { Database } from "../../src/admin/platform/database.ts";
import { localState } from "../../src/admin/platform/paths.ts";
import { readLocalKeys } from "../../src/admin/platform/sealing-key-file.ts";
import { promoteSecret, retireConsoleSecret, retireSecret } from "../../src/admin/secret/changes.ts";
import { addDoorSecret, listDoorSecrets, retireDoorSecret } from "../../src/admin/secret/doors.ts";
import { addConsoleSecret, addSecret, listSecrets } from "../../src/admin/secret/secrets.ts";
import { ROLES } from "../../src/shared/actor.ts";
import { type ApplicationId, applicationId as anyApplicationId } from "../../src/shared/identifiers.ts";
import { applicationSecret, badge, consoleSecret, doorSecret, history, signingKey } from "../../src/shared/schema.ts";
import { importSealingPrivateKey, open } from "../../src/shared/sealing.ts";
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
    const added = await addSecret(database, id);
    expect(await listed(id)).toEqual(["current", "added"]);
    await expect(addSecret(database, id)).rejects.toThrow(`secret promote ${id}`);
    await expect(retireSecret(database, id, undefined)).rejects.toThrow("secret promote");
    await promoteSecret(database, id);
    expect(await listed(id)).toEqual(["previous", "current"]);
    await expect(promoteSecret(database, id)).rejects.toThrow("no added secret to promote");
    await expect(addSecret(database, id)).rejects.toThrow(`secret retire ${id}`);
    await retireSecret(database, id, undefined);
    expect(await listSecrets(database, id)).toMatchObject([{ secretId: added.secretId, role: "current" }]);
    await expect(retireSecret(database, id, added.secretId)).rejects.toThrow("is the current secret");
    await expect(retireSecret(database, id, "sec_other")).rejects.toThrow("has no secret sec_other");
    const { secretId } = await addSecret(database, id);
    const { secrets } = await retireSecret(database, id, secretId);
    expect(secrets).toMatchObject([{ secretId: added.secretId, role: "current" }]);
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

  it("an application never has three secrets, even if several are added at once", async () => {
    const { applicationId: id } = await create();
    expect(successes(await Promise.allSettled([1, 2, 3, 4].map(() => addSecret(database, id))))).toHaveLength(1);
    expect(await listed(id)).toEqual(["current", "added"]);
  });

  it("a sealed secret can be opened only with the private half and its row's label", async () => {
    const { applicationId, applicationSecret: secret } = await create();
    expect(secret).toMatch(/^bdss_[\w-]{43}$/);
    const [row] = await database.run((orm) =>
      orm.select().from(applicationSecret).where(eq(applicationSecret.applicationId, applicationId)),
    );
    expect(row?.digest).toBe(digestOf(secret));
    const privateKey = await importSealingPrivateKey(readLocalKeys(localState()).get(row?.sealingVersion ?? 0) ?? "");
    const label = { purpose: "application-secret", applicationId, id: row?.id ?? "" } as const;
    const opened = await open(privateKey, label, row?.sealed ?? "");
    expect(new TextDecoder().decode(opened)).toBe(secret);
  });
});

describe("secrets for people (contract sections 19 and 24)", () => {
  const addFor = (id: ApplicationId, name: string, on = database) =>
    addConsoleSecret(on, id, { name, role: "operator" });

  it.each(ROLES)(
    "are added with the role %s, and are stored as a digest alone, which no sealing key opens (section 9)",
    async (role) => {
      const { applicationId } = await create();
      const { applicationSecret: secret, ...added } = await addConsoleSecret(database, applicationId, {
        name: "Ann",
        role,
      });
      expect(secret).toMatch(/^bdss_[\w-]{43}$/);
      expect(added).toEqual({ applicationId, secretId: expect.stringMatching(/^sec_/), role, name: "Ann" });
      const isItsOwn = eq(consoleSecret.applicationId, applicationId);
      const [row, ...others] = await database.run((orm) => orm.select().from(consoleSecret).where(isItsOwn));
      const { secretId: id, name } = added;
      expect(row).toEqual({ applicationId, id, name, role, digest: digestOf(secret), createdAt: expect.any(Number) });
      expect(others).toEqual([]);
      expect(await listSecrets(database, applicationId)).toMatchObject([{ role: "current" }, { name, role }]);
    },
  );

  it("people's secrets are added and retired by name, and do not count towards the server's two", async () => {
    const { applicationId: id } = await create();
    const ann = await addFor(id, "Ann Lee");
    await addSecret(database, id);
    const bob = await addFor(id, "Bob");
    expect(bob.applicationSecret).not.toBe(ann.applicationSecret);
    expect(await listed(id)).toEqual(["current", "added", "Ann Lee", "Bob"]);
    await expect(addFor(id, "Bob")).rejects.toThrow('has a secret for "Bob" already');
    await promoteSecret(database, id);
    expect((await retireConsoleSecret(database, id, "Ann Lee")).secretId).toBe(ann.secretId);
    expect(await listed(id)).toEqual(["previous", "current", "Bob"]);
    await expect(retireConsoleSecret(database, id, "Ann Lee")).rejects.toThrow('no secret for "Ann Lee"');
    await retireSecret(database, id, undefined);
    expect(await listed(id)).toEqual(["current", "Bob"]);
    await expect(retireSecret(database, id, bob.secretId)).rejects.toThrow("has no secret");
  });
});

describe("secrets for doors (contract section 26)", () => {
  const names = async (id: ApplicationId) => (await listDoorSecrets(database, id)).map(({ name }) => name);

  it("a door's secret is stored only as a digest, and the history has its creation (sections 9 and 23)", async () => {
    const { applicationId } = await create();
    const { applicationSecret: secret, secretId: id, ...added } = await addDoorSecret(database, applicationId, "North");
    expect(secret).toMatch(/^bdss_[\w-]{43}$/);
    expect({ id, ...added }).toEqual({
      id: expect.stringMatching(/^sec_/),
      applicationId,
      role: "door",
      name: "North",
    });
    const rows = await database.run((orm) =>
      orm.select().from(doorSecret).where(eq(doorSecret.applicationId, applicationId)),
    );
    const createdAt = expect.any(Number);
    expect(rows).toEqual([{ applicationId, id, name: "North", digest: digestOf(secret), createdAt }]);
    await retireDoorSecret(database, applicationId, "North");
    const noted = await database.run((orm) =>
      orm.select().from(history).where(eq(history.applicationId, applicationId)).orderBy(history.id),
    );
    const detail = JSON.stringify({ secretId: id, door: "North" });
    expect(noted).toMatchObject([
      { action: "secret:added", detail },
      { action: "secret:retired", detail },
    ]);
  });

  it("doors' secrets are added and retired by name; people and other applications may use the same names", async () => {
    const [{ applicationId: id }, { applicationId: other }] = [await create(), await create()];
    await addConsoleSecret(database, id, { name: "North", role: "operator" });
    await addDoorSecret(database, id, "South");
    const north = await addDoorSecret(database, id, "North");
    await addDoorSecret(database, other, "North");
    await expect(addDoorSecret(database, id, "North")).rejects.toThrow('has a secret for the door "North" already');
    expect(await names(id)).toEqual(["North", "South"]);
    const { secretId, secrets } = await retireDoorSecret(database, id, "North");
    expect(secretId).toBe(north.secretId);
    expect(secrets).toMatchObject([{ name: "South", role: "door" }]);
    await expect(retireDoorSecret(database, id, "North")).rejects.toThrow('has no secret for the door "North"');
    expect(await names(other)).toEqual(["North"]);
    expect(await listed(id)).toEqual(["current", "North"]);
  });
});

describe.each([
  {
    ...{ whom: "people", most: 50, table: "console_secret", remove: retireConsoleSecret },
    add: (id: ApplicationId, name: string) => addConsoleSecret(database, id, { name, role: "operator" }),
    list: async (id: ApplicationId) => (await listSecrets(database, id)).filter(({ role }) => role === "operator"),
  },
  {
    ...{ whom: "doors", most: 5000, table: "door_secret", remove: retireDoorSecret },
    add: (id: ApplicationId, name: string) => addDoorSecret(database, id, name),
    list: (id: ApplicationId) => listDoorSecrets(database, id),
  },
])("secrets for $whom (contract sections 19 and 26)", ({ whom, most, table, remove, add, list }) => {
  it(`an application has at most ${most} secrets for ${whom}, one per name, even if administrators add them at once`, async () => {
    const { applicationId: id } = await create();
    await database.run((orm) =>
      orm.run(sql`WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ${most - 2})
        INSERT INTO ${sql.raw(table)} (application_id, name, id, digest, created_at)
        SELECT ${id}, 'Holder ' || n, 'sec_' || n, 'digest ' || n, 0 FROM place`),
    );
    const one = await Promise.allSettled([1, 2, 3].map(() => add(id, "Last but one")));
    expect(successes(one)).toHaveLength(1);
    const last = await Promise.allSettled(["A", "B", "C"].map((name) => add(id, name)));
    expect(successes(last)).toHaveLength(1);
    await expect(add(id, "D")).rejects.toThrow(`has ${most} secrets for ${whom}, which is the most`);
    expect(await list(id)).toHaveLength(most);
    await addSecret(database, id);
    await add((await create()).applicationId, "A");
    await remove(database, id, "Holder 7");
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
});

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
    const states = async () =>
      (await listSigningKeys(database, applicationId)).map(({ keyId, badges, current, signsFrom }) => [
        ...[keyId, badges, current ? "current" : "", signsFrom === null ? "never signs" : "signs"],
      ]);
    expect(await states()).toEqual([
      [slow.keyId, 0, "", "signs"],
      [first?.kid, 2, "current", "signs"],
    ]);
    const urgent = await rotateSigningKey(database, applicationId, { isUrgent: true });
    expect(await states()).toEqual([
      [urgent.keyId, 0, "", "signs"],
      [slow.keyId, 0, "", "never signs"],
      [first?.kid, 2, "current", "signs"],
    ]);
    await letPass(applicationId, 600);
    expect(await states()).toEqual([
      [urgent.keyId, 0, "current", "signs"],
      [slow.keyId, 0, "", "never signs"],
      [first?.kid, 2, "", "signs"],
    ]);
  });

  /** As if an application's keys had been made earlier. */
  async function letPass(applicationId: ApplicationId, seconds: number): Promise<void> {
    await database.run((orm) =>
      orm
        .update(signingKey)
        .set({ signsFrom: sql`${signingKey.signsFrom} - ${seconds * 1000}` })
        .where(eq(signingKey.applicationId, applicationId)),
    );
  }

  it.each([
    [false, "By then every cached copy of the key set has it."],
    [true, "Doors with an older copy of the key set refuse those signatures until they fetch it again"],
  ])("key rotate prints when the new key signs, to the second and in UTC: urgent %s", (isUrgent, doors) => {
    const signsFrom = "2026-11-22T00:20:05.000Z";
    const text = rotationText({ applicationId: anyApplicationId.parse("app_1"), keyId: "new", signsFrom }, isUrgent);
    expect(text).toContain("Published key new of app_1.");
    expect(text).toContain(`New badges are signed with it from 2026-11-22 00:20:05Z on. ${doors}`);
  });

  it("key list shows which key signs now and which is next, in 80 columns", () => {
    const createdAt = "2026-11-22T00:10:05.000Z";
    const [newest, overtaken, current] = ["n".repeat(43), "o".repeat(43), "c".repeat(43)];
    const keys = [
      { keyId: newest, current: false, badges: 0, createdAt, signsFrom: "2026-11-22T00:20:05.000Z" },
      { keyId: overtaken, current: false, badges: 0, createdAt, signsFrom: null },
      { keyId: current, current: true, badges: 999_999, createdAt, signsFrom: "2026-10-01T08:00:00.000Z" },
      { keyId: "p", current: false, badges: 1, createdAt, signsFrom: "2025-10-01T08:00:00.000Z" },
    ];
    const lines = signingKeyTable(keys).split("\n").slice(1);
    expect(lines.map((line) => line.replaceAll(/ {2,}/g, "  "))).toEqual([
      `${newest}  2026-11-22 00:20:05Z  next  0`,
      `${overtaken}  -  0`,
      `${current}  2026-10-01 08:00:00Z  now  999,999`,
      "p  2025-10-01 08:00:00Z  1",
    ]);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
  });
});
