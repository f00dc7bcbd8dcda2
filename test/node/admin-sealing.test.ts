import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gt } from "drizzle-orm";
import { beforeEach, describe, expect, it } from "vitest";
import { createApplication } from "../../src/admin/application/create.ts";
import { Homes } from "../../src/admin/platform/homes.ts";
import { type LocalState, localState } from "../../src/admin/platform/paths.ts";
import { ensureLocalKey, publicHalf, readLocalKeys } from "../../src/admin/platform/sealing-key-file.ts";
import type { WorkerSecrets } from "../../src/admin/platform/worker-secrets.ts";
import { removeSealingKey } from "../../src/admin/sealing-key/commands.ts";
import { deleteSealingSecrets, makeDeployedSealingKey } from "../../src/admin/sealing-key/deployed.ts";
import { ensureLocalSealing, rotateLocalSealingKey } from "../../src/admin/sealing-key/local.ts";
import { watchResealing } from "../../src/admin/sealing-key/reseal.ts";
import { countOldValues } from "../../src/admin/sealing-key/usage.ts";
import { application, applicationSecret, sealingKey, signingKey } from "../../src/shared/schema.ts";
import { openedHomes, stateFolder } from "./support/script.ts";
import { deployedWorker, shareSealingKeys } from "./support/sealing-keys.ts";

shareSealingKeys();

const folder = stateFolder();
const { database } = await openedHomes(join(folder, "database"));
/** As a deployment with one home. */
const homes = new Homes([{ number: 1, place: null, database }]);

/** Keys 1 and 2, made once: making one takes up to a second. */
const prepared = localState(join(folder, "prepared"));
await ensureLocalKey(prepared, 1);
await ensureLocalKey(prepared, 2);

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

const create = (on: Homes) => createApplication(on, { name: "Test" });
const publicHalves = async () => {
  const rows = await database.run((orm) => orm.select().from(sealingKey).where(gt(sealingKey.version, 0)));
  return rows.map(({ version, publicKey }) => [version, publicKey]);
};
const keysOfFile = () => [...readLocalKeys(state)].map(([version, key]) => [version, publicHalf(key)]);

describe("local sealing keys (contract section 10)", () => {
  it("are created once, whichever process is first, and only their owner can read them", async () => {
    await Promise.all([1, 2].map(() => ensureLocalSealing(homes, state)));
    expect(keysOfFile()).toHaveLength(1);
    expect(await publicHalves()).toEqual(keysOfFile());
    expect(statSync(state.sealingKeys).mode & 0o777).toBe(0o600);
    expect(readFileSync(state.sealingKeys, "utf8")).toMatch(/^SEALING_KEY_1=[A-Za-z0-9+/]+=*\n$/);
  });

  it("outlive the database", async () => {
    await seed();
    await rotateLocalSealingKey(homes, state);
    const before = await publicHalves();
    await database.run((orm) => orm.delete(sealingKey));
    await ensureLocalSealing(homes, state);
    expect(await publicHalves()).toEqual(before);
  });

  it("must match those of the database", async () => {
    await seed();
    await expect(ensureLocalSealing(homes, otherState())).rejects.toThrow("does not hold the sealing key 1");
  });

  it("rotate one version at a time, even if several processes rotate at once", async () => {
    await seed();
    const versions = await Promise.all([1, 2].map(() => rotateLocalSealingKey(homes, state)));
    expect(await publicHalves()).toEqual(keysOfFile());
    expect(Math.max(...versions)).toBe((await publicHalves()).length);
  });

  it("still rotate after a run that died between file and database", async () => {
    await seed();
    expect(await rotateLocalSealingKey(homes, state)).toBe(2);
    expect(keysOfFile()).toHaveLength(2);
    expect(await publicHalves()).toEqual(keysOfFile());
  });
});

describe("sealing keys (contract section 10)", () => {
  const resealAll = (version: number) =>
    database.run((orm) =>
      orm.batch([
        orm.update(application).set({ sealingVersion: version }),
        orm.update(applicationSecret).set({ sealingVersion: version }),
        orm.update(signingKey).set({ sealingVersion: version }),
      ]),
    );

  it("show the progress until everything is re-sealed", async () => {
    await seed();
    await create(homes);
    await rotateLocalSealingKey(homes, state);
    await expect(watchResealing(homes, () => {}, 0)).rejects.toThrow("3 values still need an older sealing key");
    const progress: number[] = [];
    const watching = watchResealing(homes, (left) => progress.push(left), 10_000);
    await resealAll(2);
    await watching;
    expect(progress.at(-1)).toBe(0);
    expect(await countOldValues(homes)).toBe(0);
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
    const { applicationId } = await create(homes);
    await rotateLocalSealingKey(homes, state);
    const [secret] = await database.run((orm) => orm.select().from(applicationSecret));
    const progress: number[] = [];
    const begun = Promise.withResolvers<void>();
    const watching = watchResealing(
      homes,
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
    await expect(removeSealingKey(homes, 1)).rejects.toThrow("1 value still needs sealing key 1");
  });

  it("are counted if they are many, without the claim that the service runs", async () => {
    await seed();
    for (const _ of [1, 2, 3]) await create(homes);
    await rotateLocalSealingKey(homes, state);
    const stuck = watchResealing(homes, () => {}, 0).catch((error: unknown) => String(error));
    expect(await stuck).toMatch(/9 values still need .* and 4 more\. Start the service, then run this again/);
  });
});

describe("sealing keys of a deployed environment (contract section 9)", () => {
  /** What must hold at any time: the Worker has the private half of every public half in D1. */
  async function expectUsable({ values }: { values: Map<string, string> }): Promise<void> {
    const held = [...values].map(([name, key]) => [Number(name.split("_")[2]), publicHalf(key)]);
    for (const published of await publicHalves()) expect(held).toContainEqual(published);
  }

  it("are published only once the Worker has the private half, under a name of version and fingerprint", async () => {
    const worker = deployedWorker();
    const watched: WorkerSecrets = {
      ...worker,
      async put(name, value) {
        expect(await publicHalves()).toEqual([]);
        await worker.put(name, value);
      },
    };
    expect(await makeDeployedSealingKey(homes, watched)).toEqual({ version: 1, isOurs: true });
    const [[name, privateKey] = ["", ""], ...others] = worker.values;
    expect(others).toEqual([]);
    const publicKey = publicHalf(privateKey);
    expect(await publicHalves()).toEqual([[1, publicKey]]);
    const digest = createHash("sha256").update(Buffer.from(publicKey, "base64")).digest("hex");
    expect(name).toBe(`SEALING_KEY_1_${digest.slice(0, 16)}`);
  });

  it("are usable and never overwritten if two administrators create one at the same moment", async () => {
    const worker = deployedWorker();
    const made = await Promise.all([1, 2].map(() => makeDeployedSealingKey(homes, worker)));
    expect(made.filter(({ isOurs }) => isOurs)).not.toHaveLength(0);
    expect(worker.values.size).toBe(made.filter(({ isOurs }) => isOurs).length);
    expect(await publicHalves()).toHaveLength(worker.values.size);
    await expectUsable(worker);
  });

  it.each(["before", "after"])(
    "stay usable if an administrator stalls right %s setting the secret while another creates the same version",
    async (moment) => {
      const worker = deployedWorker();
      const overtake = async () => {
        expect(await makeDeployedSealingKey(homes, worker)).toEqual({ version: 1, isOurs: true });
      };
      const stalling: WorkerSecrets = {
        ...worker,
        async put(name, value) {
          if (moment === "before") await overtake();
          await worker.put(name, value);
          if (moment === "after") await overtake();
        },
      };
      expect(await makeDeployedSealingKey(homes, stalling)).toEqual({ version: 1, isOurs: false });
      await expectUsable(worker);
      expect(worker.values.size).toBe(1);
      // Two rotations later, too: the version is taken and the newest is another.
      const later: WorkerSecrets = {
        ...worker,
        async put(name, value) {
          for (const version of [2, 3]) {
            expect(await makeDeployedSealingKey(homes, worker)).toEqual({ version, isOurs: true });
          }
          expect(await removeSealingKey(homes, 2)).toBe(true);
          await worker.put(name, value);
        },
      };
      expect(await makeDeployedSealingKey(homes, later)).toEqual({ version: 3, isOurs: false });
      await expectUsable(worker);
      expect((await publicHalves()).map(([version]) => version)).toEqual([1, 3]);
    },
  );

  it("are not blocked by a run that died; its secret is removed with its version", async () => {
    const worker = deployedWorker();
    const dying: WorkerSecrets = {
      ...worker,
      async put(name, value) {
        await worker.put(name, value);
        throw new Error("killed");
      },
    };
    await expect(makeDeployedSealingKey(homes, dying)).rejects.toThrow("killed");
    expect(await publicHalves()).toEqual([]);
    expect(await makeDeployedSealingKey(homes, worker)).toEqual({ version: 1, isOurs: true });
    expect(await makeDeployedSealingKey(homes, worker)).toEqual({ version: 2, isOurs: true });
    await expectUsable(worker);
    expect(worker.values.size).toBe(3);
    expect(await removeSealingKey(homes, 1)).toBe(true);
    expect(await deleteSealingSecrets(worker, 1)).toBe(2);
    expect(worker.values.size).toBe(1);
    await expectUsable(worker);
  });

  it("are removed with every secret of their version, whatever its name, and no other", async () => {
    const worker = deployedWorker();
    const kept = ["SEALING_KEY_10", "SEALING_KEY_10_00ff", "SEALING_KEY_2_00ff", "OTHER"];
    for (const name of ["SEALING_KEY_1", "SEALING_KEY_1_00ff", ...kept]) await worker.put(name, "");
    expect(await deleteSealingSecrets(worker, 1)).toBe(2);
    expect([...worker.values.keys()]).toEqual(kept);
    expect(await deleteSealingSecrets(worker, 1)).toBe(0);
  });
});
