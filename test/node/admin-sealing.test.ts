import { createHash } from "node:crypto";
import { appendFileSync, readFileSync, rmSync, statSync } from "node:fs";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { createApplication } from "../../src/admin/application/create.ts";
import { Homes } from "../../src/admin/platform/homes.ts";
import { localState } from "../../src/admin/platform/paths.ts";
import { ensureLocalKey, publicHalf, readLocalKeys } from "../../src/admin/platform/sealing-key-file.ts";
import type { WorkerSecrets } from "../../src/admin/platform/worker-secrets.ts";
import { removeSealingKey } from "../../src/admin/sealing-key/commands.ts";
import { deleteSealingSecrets, makeDeployedSealingKey } from "../../src/admin/sealing-key/deployed.ts";
import { ensureLocalSealing, rotateLocalSealingKey } from "../../src/admin/sealing-key/local.ts";
import { publishNewestEverywhere } from "../../src/admin/sealing-key/newest.ts";
import { watchResealing } from "../../src/admin/sealing-key/reseal.ts";
import { application, applicationSecret, sealingKey, signingKey } from "../../src/shared/schema.ts";
import { clearHomes, FIRST_STEP, killIn, rememberHome } from "./support/homes.ts";
import { localHomes } from "./support/script.ts";

/** All that were made so far, in the order in which a test needs them. */
const pairs: Promise<CryptoKeyPair | CryptoKey>[] = [];

/**
 * The tests share sealing keys, since to make one takes up to a second: the first that any test makes is the same, so is the
 * second, and so on. Within a test no two are the same.
 */
const make = crypto.subtle.generateKey.bind(crypto.subtle);
let made = 0;
const spy = vi.spyOn(crypto.subtle, "generateKey").mockImplementation((algorithm, extractable, usages) => {
  if (typeof algorithm === "string" || algorithm.name !== "RSA-OAEP") return make(algorithm, extractable, usages);
  const pair = pairs[made] ?? make(algorithm, extractable, usages);
  pairs[made++] = pair;
  return pair;
});
afterAll(() => spy.mockRestore());

/** Two local homes. */
const { homes, submit, register, admin, create, json, refusal } = await localHomes();
const state = localState();

/** No home has a sealing key, and there is no key file. */
beforeEach(async () => {
  made = 0;
  await clearHomes(homes, register);
  await homes.map(({ database }) => database.run((orm) => orm.delete(sealingKey)));
  rmSync(state.sealingKeys, { force: true });
});

const createIn = (home: number) => createApplication(homes, submit, { name: "Test", home });

/** Version and public half of the keys of each home. */
const published = () =>
  homes.map(async ({ database }) => {
    const rows = await database.run((orm) => orm.select().from(sealingKey).orderBy(sealingKey.version));
    return rows.map(({ version, publicKey }) => [version, publicKey] as const);
  });
const versions = async () => (await published()).map((keys) => keys.map(([version]) => version));
const keysOfFile = () => [...readLocalKeys(state)].map(([version, key]) => [version, publicHalf(key)]);

/** What the service's sweep does. @param sealed what it can open */
const reseal = (on: Homes, version: number, sealed = [application, applicationSecret, signingKey]) =>
  on.map(({ database }) =>
    Promise.all(sealed.map((table) => database.run((orm) => orm.update(table).set({ sealingVersion: version })))),
  );

describe("local sealing keys (contract sections 9, 10 and 17)", () => {
  it("the first local sealing key is created once, by whichever process is first, and only its owner can read it", async () => {
    await Promise.all([1, 2].map(() => ensureLocalSealing(homes, state)));
    expect(keysOfFile()).toHaveLength(1);
    expect(await published()).toEqual([keysOfFile(), keysOfFile()]);
    expect(statSync(state.sealingKeys).mode & 0o777).toBe(0o600);
    expect(readFileSync(state.sealingKeys, "utf8")).toMatch(/^SEALING_KEY_1=[A-Za-z0-9+/]+=*\n$/);
  });

  it("local sealing keys outlive the database, and a home that is bound later gets the newest", async () => {
    await ensureLocalSealing(homes, state);
    await rotateLocalSealingKey(homes, state);
    const before = await published();
    expect(before).toEqual([keysOfFile(), keysOfFile()]);
    await homes.get(2).database.run((orm) => orm.delete(sealingKey));
    await ensureLocalSealing(homes, state);
    expect(await versions()).toEqual([[1, 2], [2]]);
    await homes.map(({ database }) => database.run((orm) => orm.delete(sealingKey)));
    await ensureLocalSealing(homes, state);
    expect(await published()).toEqual(before);
  });

  it("a command fails if the local key file does not match the database", async () => {
    await ensureLocalSealing(homes, state);
    rmSync(state.sealingKeys);
    await ensureLocalKey(state, 1);
    await expect(ensureLocalSealing(homes, state)).rejects.toThrow("does not hold the sealing key 1");
  });

  it("local sealing keys rotate one version at a time, even if several processes rotate at once", async () => {
    const made = await Promise.all([1, 2].map(() => rotateLocalSealingKey(homes, state)));
    expect(await published()).toEqual([keysOfFile(), keysOfFile()]);
    expect(Math.max(...made)).toBe(keysOfFile().length);
  });

  it("local sealing keys can be rotated after a run that died between file and database", async () => {
    await ensureLocalSealing(homes, state);
    await ensureLocalKey(state, 2);
    expect(await rotateLocalSealingKey(homes, state)).toBe(2);
    expect(keysOfFile()).toHaveLength(2);
    expect(await published()).toEqual([keysOfFile(), keysOfFile()]);
  });
});

describe("values that the service has not sealed to the newest key (contract sections 9 and 17)", () => {
  it("sealing-key reseal names the values that are left when it gives up without a change", async () => {
    await ensureLocalSealing(homes, state);
    const { applicationId } = await createIn(2);
    await rotateLocalSealingKey(homes, state);
    const [secret] = await homes.get(2).database.run((orm) => orm.select().from(applicationSecret));
    const progress: number[] = [];
    const begun = Promise.withResolvers<void>();
    const watching = watchResealing(homes, (left) => begun.resolve(void progress.push(left)), 500);
    await begun.promise;
    await reseal(homes, 2, [application, signingKey]);
    await expect(watching).rejects.toThrow(
      `1 value still needs an older sealing key: secret ${secret?.id} of ${applicationId}. The service re-sealed the others but cannot open these`,
    );
    expect(progress).toEqual([3, 1]);
    await reseal(homes, 2);
    await watchResealing(homes, (left) => progress.push(left), 0);
    expect(progress).toEqual([3, 1, 0]);
  });

  it("a sealing key stays in every home while a value needs it; then it is removed, also what an interrupted run left", async () => {
    const remove = () => refusal("sealing-key", "remove", "1");
    const unknown = "There is no sealing key 1: see npm run -s admin -- sealing-key list.\n";
    await create();
    await create("--home", "2");
    expect(await remove()).toContain("is the newest");
    const [firstKey] = readFileSync(state.sealingKeys, "utf8").split("\n");
    expect(await json("sealing-key", "rotate")).toEqual({ version: 2 });
    await reseal(new Homes([homes.first]), 2);
    expect(await remove()).toContain("3 values still need sealing key 1");
    expect(await json("sealing-key", "list")).toMatchObject([
      { version: 1, newest: false, values: 3 },
      { version: 2, newest: true, values: 3 },
    ]);
    await reseal(homes, 2);
    const removed = { code: 0, stderr: "", stdout: expect.stringMatching(/^Sealing key 1 is removed\./) };
    expect(await admin("sealing-key", "remove", "1")).toEqual(removed);
    expect(await versions()).toEqual([[2], [2]]);
    // Killed after the row, before the file.
    appendFileSync(state.sealingKeys, `${firstKey}\n`);
    expect(await admin("sealing-key", "remove", "1")).toEqual(removed);
    expect(readFileSync(state.sealingKeys, "utf8")).not.toContain("SEALING_KEY_1=");
    expect(await remove()).toBe(unknown);
  });

  it("a sealing key stays while an unbound home has applications", async () => {
    await ensureLocalSealing(homes, state);
    await createIn(2);
    await rotateLocalSealingKey(homes, state);
    await expect(removeSealingKey(new Homes([homes.first]), 1)).rejects.toThrow("home 2 has applications");
    expect((await versions())[0]).toEqual([1, 2]);
  });

  it("a sealing key that a dead run removed from one home is removed from the other by the next run", async () => {
    await ensureLocalSealing(homes, state);
    await rotateLocalSealingKey(homes, state);
    await homes.first.database.run((orm) => orm.delete(sealingKey));
    expect(await removeSealingKey(homes, 1)).toBe(true);
    expect(await versions()).toEqual([[2], [2]]);
  });
});

/** The secrets of a deployed Worker, which nobody may overwrite. */
function deployedWorker(): WorkerSecrets & { values: Map<string, string> } {
  const values = new Map<string, string>();
  return {
    values,
    async put(name, value) {
      if (values.has(name)) throw new Error(`${name} is overwritten`);
      values.set(name, value);
    },
    async delete(name) {
      if (!values.delete(name)) throw new Error(`there is no secret ${name}`);
    },
    list: async () => [...values.keys()],
  };
}

describe("sealing keys of a deployed environment (contract sections 9 and 17)", () => {
  /** What must hold at any time: the Worker has the private half of every public half in D1. */
  async function expectUsable({ values }: { values: Map<string, string> }): Promise<void> {
    const held = [...values].map(([name, key]) => [Number(name.split("_")[2]), publicHalf(key)]);
    for (const key of (await published()).flat()) expect(held).toContainEqual(key);
  }

  it("a sealing key is published only once the Worker has the private half, named by version and fingerprint", async () => {
    const worker = deployedWorker();
    const watched: WorkerSecrets = {
      ...worker,
      async put(name, value) {
        expect(await versions()).toEqual([[], []]);
        await worker.put(name, value);
      },
    };
    expect(await makeDeployedSealingKey(homes, watched)).toMatchObject({ version: 1, isOurs: true });
    const [[name, privateKey] = ["", ""], ...others] = worker.values;
    expect(others).toEqual([]);
    const publicKey = publicHalf(privateKey);
    expect(await published()).toEqual([[[1, publicKey]], [[1, publicKey]]]);
    const digest = createHash("sha256").update(Buffer.from(publicKey, "base64")).digest("hex");
    expect(name).toBe(`SEALING_KEY_1_${digest.slice(0, 16)}`);
  });

  it("two administrators who create a sealing key at once overwrite nothing, and all homes get the same usable key", async () => {
    const worker = deployedWorker();
    const made = await Promise.all([1, 2].map(() => makeDeployedSealingKey(homes, worker)));
    const [first, second] = await published();
    expect(second).toEqual(first);
    expect(first).not.toEqual([]);
    expect(first).toHaveLength(worker.values.size);
    expect(made.filter(({ isOurs }) => isOurs)).toHaveLength(worker.values.size);
    await expectUsable(worker);
  });

  it.each(["before", "after"])(
    "a sealing key stays usable if an administrator stalls right %s setting the secret while another creates the same version",
    async (moment) => {
      const worker = deployedWorker();
      const overtake = async () => {
        expect(await makeDeployedSealingKey(homes, worker)).toMatchObject({ version: 1, isOurs: true });
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
    },
  );

  it("a dead run does not block the next sealing key, and its secret is removed with its version", async () => {
    const worker = deployedWorker();
    const dying: WorkerSecrets = {
      ...worker,
      async put(name, value) {
        await worker.put(name, value);
        throw new Error("killed");
      },
    };
    await expect(makeDeployedSealingKey(homes, dying)).rejects.toThrow("killed");
    expect(await versions()).toEqual([[], []]);
    for (const version of [1, 2]) {
      expect(await makeDeployedSealingKey(homes, worker)).toMatchObject({ version, isOurs: true });
    }
    await expectUsable(worker);
    expect(worker.values.size).toBe(3);
    expect(await removeSealingKey(homes, 1)).toBe(true);
    expect(await deleteSealingSecrets(worker, 1)).toBe(2);
    expect(worker.values.size).toBe(1);
    await expectUsable(worker);
  });

  it("repeating a run that died between homes publishes the sealing key in every home", async () => {
    await makeDeployedSealingKey(homes, deployedWorker());
    const restores = [await rememberHome(homes.get(1)), await rememberHome(homes.get(2))];
    for (let step = FIRST_STEP; ; step++) {
      for (const restore of restores) await restore();
      const died = await makeDeployedSealingKey(killIn(step, homes).homes, deployedWorker()).catch(String);
      if (typeof died !== "string") break;
      expect(died).toContain("killed");
      // Whatever it got to, repeating it or any command that needs the newest key makes all homes equal.
      await publishNewestEverywhere(homes);
      const [first, second] = await published();
      expect(second?.at(-1), `step ${step}`).toEqual(first?.at(-1));
    }
    for (const each of await versions()) expect(each).toEqual([1, 2]);
  });

  it("removing a sealing key removes all secrets of its version, and no other secret", async () => {
    const worker = deployedWorker();
    const kept = ["SEALING_KEY_10", "SEALING_KEY_10_00ff", "SEALING_KEY_2_00ff", "OTHER"];
    for (const name of ["SEALING_KEY_1", "SEALING_KEY_1_00ff", ...kept]) await worker.put(name, "");
    expect(await deleteSealingSecrets(worker, 1)).toBe(2);
    expect([...worker.values.keys()]).toEqual(kept);
    expect(await deleteSealingSecrets(worker, 1)).toBe(0);
  });
});
