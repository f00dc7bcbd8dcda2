import { createHash } from "node:crypto";
import { eq, sql } from "drizzle-orm";
import { describe, expect, it, vi } from "vitest";
import { createApplication } from "../../src/admin/application/create.ts";
import { listSigningKeys, rotateSigningKey } from "../../src/admin/key/commands.ts";
import type { Database } from "../../src/admin/platform/database.ts";
import { localState } from "../../src/admin/platform/paths.ts";
import { readLocalKeys } from "../../src/admin/platform/sealing-key-file.ts";
import { promoteSecret, retireConsoleSecret, retireSecret } from "../../src/admin/secret/changes.ts";
import { addConsoleSecret, addSecret, listSecrets } from "../../src/admin/secret/secrets.ts";
import { ROLES } from "../../src/shared/actor.ts";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import { applicationSecret, badge, consoleSecret, signingKey } from "../../src/shared/schema.ts";
import { importSealingPrivateKey, open } from "../../src/shared/sealing.ts";
import { interruptBefore } from "./support/interrupted.ts";
import { localHomes } from "./support/script.ts";

const { homes, database } = await localHomes();

const create = () => createApplication(homes, { name: "Test" });

describe("secrets (contract section 9)", () => {
  it("are at most two at a time: add, promote, retire, and again", async () => {
    const { applicationId } = await create();
    const roles = async () => (await listSecrets(database, applicationId)).map(({ role }) => role);
    await expect(promoteSecret(database, applicationId)).rejects.toThrow("no added secret to promote");
    await expect(retireSecret(database, applicationId, undefined)).rejects.toThrow("no previous secret to retire");
    const added = await addSecret(database, applicationId);
    expect(await roles()).toEqual(["current", "added"]);
    await expect(addSecret(database, applicationId)).rejects.toThrow(`secret promote ${applicationId}`);
    await expect(retireSecret(database, applicationId, undefined)).rejects.toThrow("secret promote");
    await promoteSecret(database, applicationId);
    expect(await roles()).toEqual(["previous", "current"]);
    await expect(promoteSecret(database, applicationId)).rejects.toThrow("no added secret to promote");
    await expect(addSecret(database, applicationId)).rejects.toThrow(`secret retire ${applicationId}`);
    await retireSecret(database, applicationId, undefined);
    expect(await listSecrets(database, applicationId)).toMatchObject([{ secretId: added.secretId, role: "current" }]);
    await expect(retireSecret(database, applicationId, added.secretId)).rejects.toThrow("is the current secret");
  });

  it("can be retired by name before their promotion", async () => {
    const { applicationId } = await create();
    const { secretId } = await addSecret(database, applicationId);
    await expect(retireSecret(database, applicationId, "sec_other")).rejects.toThrow("has no secret sec_other");
    const { secrets } = await retireSecret(database, applicationId, secretId);
    expect(secrets.map(({ role }) => role)).toEqual(["current"]);
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
      const { applicationId } = await create();
      const { secretId } = await addSecret(database, applicationId);
      const racing = interruptBefore(step, database, () => other(database, applicationId, secretId));
      const said = await change(racing.database, applicationId, secretId).then(
        () => "done",
        (error: Error) => error.message,
      );
      if (!racing.wasInterrupted()) return expect(said).toBe("done");
      expect(said).toMatch(refusal);
      expect((await listSecrets(database, applicationId)).map(({ role }) => role)).toEqual(left);
    },
  );

  it("never become three, even if several are added at once", async () => {
    const { applicationId } = await create();
    const settled = await Promise.allSettled([1, 2, 3, 4].map(() => addSecret(database, applicationId)));
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await listSecrets(database, applicationId)).toHaveLength(2);
  });

  it("are sealed to their row: only the private half, with the same label, opens them", async () => {
    const { applicationId, applicationSecret: secret } = await create();
    expect(secret).toMatch(/^bdss_[\w-]{43}$/);
    const [row] = await database.run((orm) =>
      orm.select().from(applicationSecret).where(eq(applicationSecret.applicationId, applicationId)),
    );
    expect(row?.digest).toBe(createHash("sha256").update(secret).digest("base64url"));
    const privateKey = await importSealingPrivateKey(readLocalKeys(localState()).get(row?.sealingVersion ?? 0) ?? "");
    const label = { purpose: "application-secret", applicationId, id: row?.id ?? "" } as const;
    const opened = await open(privateKey, label, row?.sealed ?? "");
    expect(new TextDecoder().decode(opened)).toBe(secret);
    await expect(open(privateKey, { ...label, id: "sec_other" }, row?.sealed ?? "")).rejects.toThrow();
  });
});

const operator = (name: string) => ({ name, role: "operator" }) as const;

describe("secrets for people (contract sections 19 and 24)", () => {
  it("are listed with the role that they were added with", async () => {
    const { applicationId } = await create();
    for (const role of ROLES) await addConsoleSecret(database, applicationId, { name: role, role });
    const people = (await listSecrets(database, applicationId)).filter(({ name }) => name !== undefined);
    expect(people).toMatchObject([
      { name: "operator", role: "operator" },
      { name: "reception", role: "reception" },
      { name: "viewer", role: "viewer" },
    ]);
  });

  it("are added and retired by name, beside the two of the server, which do not count them", async () => {
    const { applicationId } = await create();
    const roles = async () => (await listSecrets(database, applicationId)).map(({ role, name }) => name ?? role);
    const ann = await addConsoleSecret(database, applicationId, operator("Ann Lee"));
    expect(ann).toEqual({
      applicationId,
      secretId: expect.stringMatching(/^sec_/),
      applicationSecret: expect.stringMatching(/^bdss_[\w-]{43}$/),
      role: "operator",
      name: "Ann Lee",
    });
    await addSecret(database, applicationId);
    const bob = await addConsoleSecret(database, applicationId, operator("Bob"));
    expect(bob.applicationSecret).not.toBe(ann.applicationSecret);
    expect(await roles()).toEqual(["current", "added", "Ann Lee", "Bob"]);
    await expect(addConsoleSecret(database, applicationId, operator("Bob"))).rejects.toThrow(
      'has a secret for "Bob" already',
    );
    await promoteSecret(database, applicationId);
    expect((await retireConsoleSecret(database, applicationId, "Ann Lee")).secretId).toBe(ann.secretId);
    expect(await roles()).toEqual(["previous", "current", "Bob"]);
    await expect(retireConsoleSecret(database, applicationId, "Ann Lee")).rejects.toThrow('no secret for "Ann Lee"');
    await retireSecret(database, applicationId, undefined);
    expect(await roles()).toEqual(["current", "Bob"]);
    await expect(retireSecret(database, applicationId, bob.secretId)).rejects.toThrow("has no secret");
  });

  it("are at most 50, whoever adds at once, and of each name one", async () => {
    const { applicationId } = await create();
    const added = (name: string) => addConsoleSecret(database, applicationId, operator(name)).then(() => true, String);
    const rows = Array.from({ length: 48 }, (_, place) => ({
      name: `Person ${place}`,
      id: `sec_${place}`,
      digest: "",
    }));
    for (const row of rows) {
      await database.run((orm) => orm.insert(consoleSecret).values({ ...row, applicationId, createdAt: 0 }));
    }
    const one = await Promise.all([1, 2, 3].map(() => added("Last but one")));
    expect(one.filter((result) => result === true)).toHaveLength(1);
    const last = await Promise.all(["A", "B", "C"].map(added));
    expect(last.filter((result) => result === true)).toHaveLength(1);
    expect(last.find((result) => result !== true)).toContain("has 50 secrets for people, which is the most");
    expect((await listSecrets(database, applicationId)).filter(({ role }) => role === "operator")).toHaveLength(50);
    await addSecret(database, applicationId);
    const { applicationId: other } = await create();
    await addConsoleSecret(database, other, operator("A"));
  });

  it("are stored as digests alone, so that no sealing key opens them (contract section 9)", async () => {
    const { applicationId } = await create();
    const { applicationSecret: secret, secretId: id } = await addConsoleSecret(
      database,
      applicationId,
      operator("Ann"),
    );
    const rows = await database.run((orm) =>
      orm.select().from(consoleSecret).where(eq(consoleSecret.applicationId, applicationId)),
    );
    const digest = createHash("sha256").update(secret).digest("base64url");
    expect(rows).toEqual([{ applicationId, name: "Ann", role: "operator", id, digest, createdAt: expect.any(Number) }]);
  });

  it("given to a name while its old one is retired stay", async () => {
    const { applicationId } = await create();
    await addConsoleSecret(database, applicationId, operator("Ann"));
    let again = "";
    const other = interruptBefore(3, database, async () => {
      await retireConsoleSecret(database, applicationId, "Ann");
      again = (await addConsoleSecret(database, applicationId, operator("Ann"))).secretId;
    });
    await retireConsoleSecret(other.database, applicationId, "Ann");
    expect(other.wasInterrupted()).toBe(true);
    expect(await listSecrets(database, applicationId)).toMatchObject([
      { role: "current" },
      { role: "operator", secretId: again },
    ]);
  });
});

describe("signing keys", () => {
  it("rotate for new badges and stay for the others", async () => {
    const { applicationId, firstNumber } = await create();
    const [first] = await database.run((orm) =>
      orm.select().from(signingKey).where(eq(signingKey.applicationId, applicationId)),
    );
    await database.run((orm) =>
      orm.insert(badge).values(
        [1, 2].map((place) => ({
          number: firstNumber + place,
          applicationId,
          position: place,
          signingKeyId: first?.id,
        })),
      ),
    );
    const { keyId } = await rotateSigningKey(database, applicationId, { isUrgent: false });
    expect(await listSigningKeys(database, applicationId)).toMatchObject([
      { keyId, current: false, badges: 0 },
      { keyId: first?.kid, current: true, badges: 2 },
    ]);
    await letPass(applicationId, 600);
    expect(await listSigningKeys(database, applicationId)).toMatchObject([
      { keyId, current: true, badges: 0 },
      { keyId: first?.kid, current: false, badges: 2 },
    ]);
  });

  it.each([
    { isUrgent: false, delays: [600] },
    { isUrgent: true, delays: [20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30] },
  ])(
    "sign from a time that the command says, whatever this computer's clock (section 10): urgent $isUrgent",
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

  it("of two rotations keep the order of the commands: the later one wins", async () => {
    const { applicationId } = await create();
    const slow = await rotateSigningKey(database, applicationId, { isUrgent: false });
    const urgent = await rotateSigningKey(database, applicationId, { isUrgent: true });
    const states = async () =>
      (await listSigningKeys(database, applicationId)).map(({ keyId, current, signsFrom }) => ({
        keyId,
        current,
        signs: signsFrom !== null,
      }));
    const [first] = (await states()).slice(-1);
    expect(await states()).toEqual([
      { keyId: urgent.keyId, current: false, signs: true },
      { keyId: slow.keyId, current: false, signs: false },
      { keyId: first?.keyId, current: true, signs: true },
    ]);
    await letPass(applicationId, 600);
    expect(await states()).toEqual([
      { keyId: urgent.keyId, current: true, signs: true },
      { keyId: slow.keyId, current: false, signs: false },
      { keyId: first?.keyId, current: false, signs: true },
    ]);
  });
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
