import { rmSync } from "node:fs";
import { beforeEach, describe, expect, it } from "vitest";
import { createApplication } from "../../src/admin/application/create.ts";
import { localState } from "../../src/admin/platform/paths.ts";
import { removeSealingKey } from "../../src/admin/sealing-key/commands.ts";
import { makeDeployedSealingKey } from "../../src/admin/sealing-key/deployed.ts";
import { ensureLocalSealing, rotateLocalSealingKey } from "../../src/admin/sealing-key/local.ts";
import { publishNewestEverywhere } from "../../src/admin/sealing-key/newest.ts";
import { watchResealing } from "../../src/admin/sealing-key/reseal.ts";
import { countOldValues, listSealingKeys } from "../../src/admin/sealing-key/usage.ts";
import { application, applicationSecret, sealingKey, signingKey } from "../../src/shared/schema.ts";
import { clearHomes, FIRST_STEP, killIn, rememberHome } from "./support/homes.ts";
import { openedHomes, stateFolder } from "./support/script.ts";
import { deployedWorker, shareSealingKeys } from "./support/sealing-keys.ts";

shareSealingKeys();

/** Two local homes. */
const { homes } = await openedHomes(stateFolder());

beforeEach(async () => {
  await clearHomes(homes);
  await homes.everywhere(({ database }) => database.run((orm) => orm.delete(sealingKey)));
  rmSync(localState().sealingKeys, { force: true });
});

const create = (home: number) => createApplication(homes, { name: "Test", home });

/** Version and public half of the keys of each home. */
const published = () =>
  homes.everywhere(async ({ database }) => {
    const rows = await database.run((orm) => orm.select().from(sealingKey));
    return rows.map(({ version, publicKey }) => [version, publicKey] as const);
  });
const versions = async () => (await published()).map((keys) => keys.map(([version]) => version));

/** What the service's sweep does in one home. */
const resealIn = (home: number, version: number) =>
  homes
    .numbered(home)
    .database.run((orm) =>
      orm.batch([
        orm.update(application).set({ sealingVersion: version }),
        orm.update(applicationSecret).set({ sealingVersion: version }),
        orm.update(signingKey).set({ sealingVersion: version }),
      ]),
    );

describe("sealing keys of two homes (contract sections 9 and 17)", () => {
  it("are the same in both, from the first on, also in a home that is bound later", async () => {
    await ensureLocalSealing(homes, localState());
    await rotateLocalSealingKey(homes, localState());
    const [first, second] = await published();
    expect(first?.map(([version]) => version)).toEqual([1, 2]);
    expect(second).toEqual(first);
    await homes.numbered(2).database.run((orm) => orm.delete(sealingKey));
    await ensureLocalSealing(homes, localState());
    expect((await published())[1]).toEqual([first?.[1]]);
    const made = await create(2);
    expect(await listSealingKeys(homes)).toMatchObject([
      { version: 1, newest: false, values: 0 },
      { version: 2, newest: true, values: 3 },
    ]);
    expect(made.applicationId).toMatch(/^app2_/);
  });

  it("are published in every home when a run that died in between is repeated", async () => {
    await makeDeployedSealingKey(homes, deployedWorker());
    for (let step = FIRST_STEP; ; step++) {
      const restores = [await rememberHome(homes.numbered(1)), await rememberHome(homes.numbered(2))];
      const dying = killIn(step, homes);
      const died = await makeDeployedSealingKey(dying.homes, deployedWorker()).catch((error: unknown) => String(error));
      if (typeof died !== "string") break;
      expect(died).toContain("killed");
      // Whatever it got to, repeating it or any command that needs the newest key makes all homes equal.
      await publishNewestEverywhere(homes);
      const [first, second] = await versions();
      expect(second?.at(-1), `step ${step}`).toBe(first?.at(-1));
      expect((await published())[1]?.at(-1)).toEqual((await published())[0]?.at(-1));
      for (const restore of restores) await restore();
    }
    expect(await versions()).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  it("are made once for all homes when two administrators make one at the same moment", async () => {
    const worker = deployedWorker();
    const made = await Promise.all([1, 2].map(() => makeDeployedSealingKey(homes, worker)));
    const [first, second] = await published();
    expect(second).toEqual(first);
    expect(worker.values.size).toBe(made.filter(({ isOurs }) => isOurs).length);
  });

  it("stay while a value of any home needs them, and go from every home when none does", async () => {
    await ensureLocalSealing(homes, localState());
    await create(1);
    await create(2);
    await rotateLocalSealingKey(homes, localState());
    expect(await countOldValues(homes)).toBe(6);
    await resealIn(1, 2);
    await expect(removeSealingKey(homes, 1)).rejects.toThrow("3 values still need sealing key 1");
    // Home 1 did not need it, but it stays there as well.
    expect(await versions()).toEqual([
      [1, 2],
      [1, 2],
    ]);
    await expect(watchResealing(homes, () => {}, 0)).rejects.toThrow(/3 values still need .* of app2_/);
    await resealIn(2, 2);
    await watchResealing(homes, () => {}, 0);
    expect(await removeSealingKey(homes, 1)).toBe(true);
    expect(await versions()).toEqual([[2], [2]]);
    expect(await removeSealingKey(homes, 1)).toBe(false);
    await expect(removeSealingKey(homes, 2)).rejects.toThrow("is the newest");
    await expect(removeSealingKey(homes, 3)).rejects.toThrow("There is no sealing key 3");
  });

  it("are removed from the other home by the same command after a run that died in between", async () => {
    await ensureLocalSealing(homes, localState());
    await rotateLocalSealingKey(homes, localState());
    await homes.numbered(1).database.run((orm) => orm.delete(sealingKey));
    expect(await removeSealingKey(homes, 1)).toBe(true);
    expect(await versions()).toEqual([[2], [2]]);
  });

  it("are as new in a home that was restored as in the others, before anything is sealed there", async () => {
    await ensureLocalSealing(homes, localState());
    const restore = await rememberHome(homes.numbered(2));
    await rotateLocalSealingKey(homes, localState());
    await restore();
    expect(await versions()).toEqual([[1, 2], [1]]);
    await ensureLocalSealing(homes, localState());
    expect(await versions()).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });
});
