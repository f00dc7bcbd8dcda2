import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gt } from "drizzle-orm";
import "../../src/admin/platform/quick-loading.ts";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { createApplication } from "../../src/admin/operations/application-create.ts";
import { makeDeployedSealingKey } from "../../src/admin/operations/deployed-sealing.ts";
import { ensureLocalSealing, rotateLocalSealingKey } from "../../src/admin/operations/local-sealing.ts";
import { countOldValues, listSealingKeys, removeSealingKey } from "../../src/admin/operations/sealing-keys.ts";
import { watchResealing } from "../../src/admin/operations/watch-resealing.ts";
import type { Database } from "../../src/admin/platform/database.ts";
import {
  ensureLocalKey,
  publicHalf,
  readLocalKeys,
  removeLocalKey,
} from "../../src/admin/platform/local-sealing-keys.ts";
import { type LocalState, localState } from "../../src/admin/platform/paths.ts";
import { openDatabase } from "../../src/admin/session.ts";
import { application, applicationSecret, sealingKey, signingKey } from "../../src/storage/schema.ts";

const folder = mkdtempSync(join(tmpdir(), "badge-admin-test-"));
process.env.BADGE_STATE_DIR = join(folder, "database");
const { database, close } = await openDatabase(undefined);

/** Keys 1 and 2, made once: making one takes up to a second. */
const prepared = localState(join(folder, "prepared"));
await ensureLocalKey(prepared, 1);
await ensureLocalKey(prepared, 2);

afterAll(async () => {
  await close();
  rmSync(folder, { recursive: true, force: true });
});

/** Every test has key files of its own and an empty database. */
let state: LocalState;
let place = 0;
const otherState = (): LocalState => {
  const home = join(folder, String(++place));
  mkdirSync(home);
  return localState(home);
};

beforeEach(async () => {
  state = otherState();
  await database.run((orm) =>
    orm.batch([orm.delete(applicationSecret), orm.delete(signingKey), orm.delete(application), orm.delete(sealingKey)]),
  );
});

/** A database with sealing key 1, whose key file knows already what key 2 will be. */
async function seed(): Promise<void> {
  copyFileSync(prepared.sealingKeys, state.sealingKeys);
  const publicKey = publicHalf(readLocalKeys(prepared).get(1) ?? "");
  await database.run((orm) => orm.insert(sealingKey).values({ version: 1, publicKey, createdAt: 1 }));
}

const plain = { name: "Test", webhookUrl: null, requireSecret: false, reuseAfterSeconds: 0 };
const create = (on: Database) => createApplication(on, { ...plain, signatureLifetimeSeconds: null });
const publicHalves = async () => {
  const rows = await database.run((orm) => orm.select().from(sealingKey).where(gt(sealingKey.version, 0)));
  return rows.map(({ version, publicKey }) => [version, publicKey]);
};
const keysOfFile = () => [...readLocalKeys(state)].map(([version, key]) => [version, publicHalf(key)]);

describe("local sealing keys", () => {
  it("are made once, whoever starts first, and only their owner reads them", async () => {
    await Promise.all([1, 2].map(() => ensureLocalSealing(database, state)));
    expect(keysOfFile()).toHaveLength(1);
    expect(await publicHalves()).toEqual(keysOfFile());
    expect(statSync(state.sealingKeys).mode & 0o777).toBe(0o600);
    expect(readFileSync(state.sealingKeys, "utf8")).toMatch(/^SEALING_KEY_1=[A-Za-z0-9+/]+=*\n$/);
  });

  it("outlive the database", async () => {
    await seed();
    await rotateLocalSealingKey(database, state);
    const before = await publicHalves();
    await database.run((orm) => orm.delete(sealingKey));
    await ensureLocalSealing(database, state);
    expect(await publicHalves()).toEqual(before);
  });

  it("must be those of the database", async () => {
    await seed();
    await expect(ensureLocalSealing(database, otherState())).rejects.toThrow("does not hold the sealing key 1");
  });

  it("rotate one version at a time, whoever does it at once", async () => {
    await seed();
    const versions = await Promise.all([1, 2].map(() => rotateLocalSealingKey(database, state)));
    expect(await publicHalves()).toEqual(keysOfFile());
    expect(Math.max(...versions)).toBe((await publicHalves()).length);
  });

  it("rotate on after a run that died between file and database", async () => {
    await seed();
    expect(await rotateLocalSealingKey(database, state)).toBe(2);
    expect(keysOfFile()).toHaveLength(2);
    expect(await publicHalves()).toEqual(keysOfFile());
  });

  it("are taken out of the file one by one", async () => {
    await seed();
    removeLocalKey(state, 1);
    removeLocalKey(state, 1);
    expect([...readLocalKeys(state).keys()]).toEqual([2]);
  });
});

describe("sealing keys", () => {
  const resealAll = (version: number) =>
    database.run((orm) =>
      orm.batch([
        orm.update(application).set({ sealingVersion: version }),
        orm.update(applicationSecret).set({ sealingVersion: version }),
        orm.update(signingKey).set({ sealingVersion: version }),
      ]),
    );

  it("count the values that need them, and seal to the newest", async () => {
    await seed();
    await create(database);
    await rotateLocalSealingKey(database, state);
    await create(database);
    expect(await listSealingKeys(database)).toMatchObject([
      { version: 1, newest: false, values: 3 },
      { version: 2, newest: true, values: 3 },
    ]);
  });

  it("are removed only when nothing needs them", async () => {
    await seed();
    await create(database);
    await expect(removeSealingKey(database, 1)).rejects.toThrow("is the newest");
    await rotateLocalSealingKey(database, state);
    await expect(removeSealingKey(database, 1)).rejects.toThrow("3 values still need sealing key 1");
    await resealAll(2);
    await removeSealingKey(database, 1);
    await removeSealingKey(database, 1);
    expect((await listSealingKeys(database)).map(({ version }) => version)).toEqual([2]);
  });

  it("are watched until everything is re-sealed", async () => {
    await seed();
    await create(database);
    await rotateLocalSealingKey(database, state);
    await expect(watchResealing(database, () => {}, 0)).rejects.toThrow("3 values still need an older sealing key");
    const progress: number[] = [];
    const watching = watchResealing(database, (left) => progress.push(left), 10_000);
    await resealAll(2);
    await watching;
    expect(progress.at(-1)).toBe(0);
    expect(await countOldValues(database)).toBe(0);
  });
});

describe("values that the service cannot open (contract section 9)", () => {
  const resealAllButSecrets = (version: number) =>
    database.run((orm) =>
      orm.batch([
        orm.update(application).set({ sealingVersion: version }),
        orm.update(signingKey).set({ sealingVersion: version }),
      ]),
    );

  it("are named by sealing-key reseal, which gives up when nothing changes; their key is not removed", async () => {
    await seed();
    const { applicationId } = await create(database);
    await rotateLocalSealingKey(database, state);
    const [secret] = await database.run((orm) => orm.select().from(applicationSecret));
    const progress: number[] = [];
    const begun = Promise.withResolvers<void>();
    const watching = watchResealing(
      database,
      (left) => {
        progress.push(left);
        begun.resolve();
      },
      1500,
    );
    await begun.promise;
    await resealAllButSecrets(2);
    await expect(watching).rejects.toThrow(
      `1 value still needs an older sealing key: secret ${secret?.id} of ${applicationId}. The service re-sealed the others but cannot open these`,
    );
    expect(progress).toEqual([3, 1]);
    await expect(removeSealingKey(database, 1)).rejects.toThrow("1 values still need sealing key 1");
  });

  it("are counted where they are many, and nobody claims that the service runs", async () => {
    await seed();
    for (const _ of [1, 2, 3]) await create(database);
    await rotateLocalSealingKey(database, state);
    const stuck = watchResealing(database, () => {}, 0).catch((error: unknown) => String(error));
    expect(await stuck).toMatch(/9 values still need .* and 4 more\. Start the service, then run this again/);
  });
});

describe("sealing keys of a deployed environment", () => {
  it("are published only once the Worker has the private half", async () => {
    const secrets = new Map<number, string>();
    const version = await makeDeployedSealingKey(database, async (each, privateKey) => {
      expect(await publicHalves()).toEqual([]);
      secrets.set(each, privateKey);
    });
    expect(version).toBe(1);
    expect(await publicHalves()).toEqual([[1, publicHalf(secrets.get(1) ?? "")]]);
  });

  it("are never made by two administrators at once", async () => {
    const puts: string[] = [];
    const put = async (_version: number, privateKey: string) => puts.push(privateKey);
    const settled = await Promise.allSettled([1, 2].map(() => makeDeployedSealingKey(database, put)));
    const made = settled.filter(({ status }) => status === "fulfilled").length;
    expect(made).toBeGreaterThan(0);
    expect(puts).toHaveLength(made);
    expect(await publicHalves()).toEqual(puts.map((key, index) => [index + 1, publicHalf(key)]));
  });

  it("are not published by a run that was overtaken, nor blocked for ever by one that died", async () => {
    const died = makeDeployedSealingKey(database, () => Promise.reject(new Error("killed")));
    await expect(died).rejects.toThrow("killed");
    const soon = makeDeployedSealingKey(database, () => Promise.resolve());
    await expect(soon).rejects.toThrow("Another administrator");
    await database.run((orm) => orm.update(sealingKey).set({ createdAt: Date.now() - 16 * 60_000 }));
    expect(await makeDeployedSealingKey(database, () => Promise.resolve())).toBe(1);
    expect((await listSealingKeys(database)).map(({ version }) => version)).toEqual([1]);
  });
});
