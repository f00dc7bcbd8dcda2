import { eq } from "drizzle-orm";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { listApplications } from "../../src/admin/application/commands.ts";
import { createApplication } from "../../src/admin/application/create.ts";
import { updateApplication } from "../../src/admin/application/update.ts";
import { checkHomes } from "../../src/admin/home/check.ts";
import { releaseNumbers } from "../../src/admin/home/clear-registration.ts";
import { listRegistrations } from "../../src/admin/number-range/owners.ts";
import { Homes } from "../../src/admin/platform/homes.ts";
import { plainHomeSubmitter } from "../../src/admin/script-command/submit.ts";
import { type ApplicationId, newApplicationId } from "../../src/shared/identifiers.ts";
import { application, applicationSecret, numberRange, signingKey } from "../../src/shared/schema.ts";
import { aroundSteps, clearHomes, FIRST_STEP, interruptHomes, killIn, rememberHome } from "./support/homes.ts";
import { localHomes } from "./support/script.ts";

/** Two local homes. */
const { homes, register } = await localHomes();

beforeEach(async () => {
  await clearHomes(homes, register);
  // What the register logs.
  for (const name of ["log", "warn"] as const) vi.spyOn(console, name).mockImplementation(() => {});
});

/** As the script does it, on these homes. */
const submitOn = (on: Homes) => plainHomeSubmitter({ homes: on, wake: register.wake });

const create = (home: number, ends?: readonly [number, number], on: Homes = homes) =>
  createApplication(on, submitOn(on), { name: "Test", home, range: ends && { first: ends[0], last: ends[1] } });
const grow = (id: ApplicationId, lastNumber: number, on: Homes = homes) =>
  updateApplication(on, submitOn(on), id, { lastNumber });
const check = (on: Homes = homes) => checkHomes(on, submitOn(on));
/** @returns the warnings */
async function release(id: ApplicationId): Promise<string[]> {
  const warnings: string[] = [];
  await releaseNumbers(homes, submitOn(homes), id, (line) => warnings.push(line));
  return warnings;
}

const home = (number: number) => homes.get(number);

/** Tries a command that something happens to at each of its steps, one after the other, until it has fewer. */
async function atEachStep(attempt: (step: number) => Promise<{ isOver: boolean }>): Promise<void> {
  for (let step = FIRST_STEP; ; step++) {
    await clearHomes(homes, register);
    const { isOver } = await attempt(step);
    if (isOver) return;
    await expectDisjoint();
  }
}

/** The ranges of all homes' applications, in their order. */
const ranges = async (): Promise<[number, number][]> =>
  (await listApplications(homes)).map(({ firstNumber, lastNumber }) => [firstNumber, lastNumber]);

/** What must hold at any time: no number is in two ranges, and no application lacks its secret or its key. */
async function expectDisjoint(): Promise<void> {
  const all = await ranges();
  for (const [index, [first]] of all.entries()) expect(first).toBeGreaterThan(all[index - 1]?.[1] ?? 0);
  await homes.map(async ({ database }) => {
    const tables = [application, applicationSecret, signingKey];
    const counts = await Promise.all(tables.map((table) => database.run((orm) => orm.$count(table))));
    expect(new Set(counts).size).toBe(1);
  });
}

const registered = async (): Promise<[ApplicationId, number, number][]> =>
  (await listRegistrations(homes)).map((row) => [row.applicationId, row.firstNumber, row.lastNumber]);

/** What is registered in this work was registered so many hours ago. */
async function hoursAgo<Result>(hours: number, work: () => Promise<Result>): Promise<Result> {
  register.now = () => Date.now() - hours * 3_600_000;
  try {
    return await work();
  } finally {
    register.now = Date.now;
  }
}

describe("number ranges (contract sections 10 and 17)", () => {
  it("a range is registered in home 1 for an application of home 2, and refused to every home that wants one of its numbers", async () => {
    const { applicationId } = await create(2, [100, 199]);
    expect(applicationId).toMatch(/^app2_/);
    expect(await home(2).database.run((orm) => orm.select().from(numberRange))).toEqual([]);
    for (const [first, last] of [
      [50, 100],
      [199, 250],
    ] as const) {
      for (const other of [1, 2]) {
        await expect(create(other, [first, last])).rejects.toThrow(
          `Numbers ${first}-${last} overlap application ${applicationId} (100-199)`,
        );
      }
    }
    expect(await registered()).toEqual([[applicationId, 100, 199]]);
    await expectDisjoint();
    const highest = await create(1, [200, Number.MAX_SAFE_INTEGER]);
    expect(highest.lastNumber).toBe(Number.MAX_SAFE_INTEGER);
    await create(1, [1, 99]);
    await expect(create(2)).rejects.toThrow("No block of numbers up to 34359738367 is free");
  });

  it("a range grows only at its end, into numbers that no home has, and registers them first", async () => {
    const { applicationId: id } = await create(2, [100, 199]);
    const neighbour = await create(1, [300, 399]);
    const overlap = (last: number) => `Numbers 100-${last} overlap application ${neighbour.applicationId} (300-399)`;
    for (const last of [300, 500]) await expect(grow(id, last)).rejects.toThrow(overlap(last));
    await updateApplication(homes, submitOn(homes), id, { firstNumber: 100, lastNumber: 299 });
    expect(await registered()).toContainEqual([id, 100, 299]);
    await expect(grow(id, 298)).rejects.toThrow("ends at 299 and can only grow");
    await expect(updateApplication(homes, submitOn(homes), id, { firstNumber: 99 })).rejects.toThrow(
      "starts at 100, which cannot change",
    );
    await expect(create(1, [250, 260])).rejects.toThrow(`application ${id} (100-299)`);
    expect(await grow(id, 299)).toMatchObject({ firstNumber: 100, lastNumber: 299 });
    expect(await grow(neighbour.applicationId, 499)).toMatchObject({ lastNumber: 499 });
  });
});

describe("administrators who race (contract section 17)", () => {
  it.each([1, 2])(
    "two administrators never get the same numbers, wherever one overtakes the one of home %i",
    async (mine) => {
      const others = 3 - mine;
      await atEachStep(async (step) => {
        const racing = interruptHomes(step, homes, () => create(others, [500, 599]).catch(() => {}));
        const [first] = await Promise.allSettled([create(mine, [550, 650], racing.homes)]);
        if (racing.steps() < step) return { isOver: true };
        const all = await ranges();
        expect(all.length, `step ${step}`).toBeLessThanOrEqual(1);
        expect(first.status === "fulfilled").toBe(all[0]?.[0] === 550);
        return { isOver: false };
      });
    },
  );
});

describe("a command that dies half-way (contract section 17)", () => {
  it.each([1, 2])(
    "a command that dies creates all or nothing in home %i, and nobody else gets its numbers meanwhile",
    async (number) => {
      await atEachStep(async (step) => {
        const died = await create(number, [100, 199], killIn(step, homes).homes).catch(String);
        if (typeof died !== "string") return { isOver: true };
        expect(died).toContain("killed");
        await expectDisjoint();
        const [second] = await Promise.allSettled([create(3 - number, [150, 250])]);
        const isRegistered = (await registered()).some(([, first]) => first === 100);
        expect(second.status).toBe(isRegistered ? "rejected" : "fulfilled");
        expect((await create(1)).firstNumber).toBe(1_000_000_000);
        return { isOver: false };
      });
    },
  );

  /** Registers 100 to 199 for an application that is never created. */
  async function registerOnly(hours: number): Promise<ApplicationId> {
    const applicationId = newApplicationId(2);
    const command = { kind: "register", applicationId, range: { first: 100, last: 199 } } as const;
    await hoursAgo(hours, () => submitOn(homes)(command));
    return applicationId;
  }

  it("a creation that dies leaves a registration that home check reports after 24 hours and only --release clears", async () => {
    const id = await registerOnly(23.9);
    await expect(create(1, [100, 199])).rejects.toThrow(`overlap those registered for ${id} (100-199)`);
    expect(await check()).toMatchObject({ unused: [], kept: [{ applicationId: id, reason: "recent" }] });
    await expect(release(id)).rejects.toThrow("less than 24 hours ago");
    await clearHomes(homes, register);
    const old = await registerOnly(24.1);
    expect(await check()).toMatchObject({ unused: [{ applicationId: old, firstNumber: 100 }], kept: [] });
    await expect(create(1, [100, 199])).rejects.toThrow(old);
    expect(await release(old)).toEqual([expect.stringContaining("phones and doors may still hold numbers 100-199")]);
    await create(1, [100, 199]);
    const [{ applicationId } = { applicationId: id }] = await listApplications(homes);
    await expect(release(applicationId)).rejects.toThrow("exists, so its numbers stay registered");
    await expect(release(newApplicationId(1))).rejects.toThrow("No numbers are registered");
    await expect(release(newApplicationId(9))).rejects.toThrow("There is no home 9");
  });

  it.each([1, 2])(
    "a creation in home %i does not use numbers that were released while its computer slept",
    async (number) => {
      // Two days go by between the registration and the last step, which inserts the application.
      const counted = aroundSteps(homes, (_, take) => take());
      await create(number, [100, 199], counted.homes);
      await clearHomes(homes, register);
      const sleeping = interruptHomes(counted.steps(), homes, async () => {
        const [[id] = [undefined]] = await registered();
        await hoursAgo(0, async () => {
          if (id !== undefined) await release(id);
          await create(3 - number, [100, 199]);
        });
      });
      await expect(hoursAgo(48, () => create(number, [100, 199], sleeping.homes))).rejects.toThrow("but not used");
      await expectDisjoint();
      expect(await ranges()).toEqual([[100, 199]]);
    },
  );

  it("a range whose growth died has grown or not, and the same command takes the numbers", async () => {
    await atEachStep(async (step) => {
      const { applicationId } = await create(2, [100, 199]);
      const died = await grow(applicationId, 299, killIn(step, homes).homes).catch(String);
      if (typeof died !== "string") return { isOver: true };
      await create(1, [250, 350]).catch(() => {});
      await expectDisjoint();
      await Promise.allSettled([grow(applicationId, 299)]);
      await expectDisjoint();
      await check();
      expect((await registered()).map(([id]) => id)).toContain(applicationId);
      return { isOver: false };
    });
  });
});

describe("one home that was restored alone (contract sections 17 and 21)", () => {
  it("home 1 restored to before an application of home 2 does not give its numbers again", async () => {
    const restore = await rememberHome(home(1));
    const { applicationId } = await create(2);
    await restore();
    await expect(create(1, [1_009_999_000, 1_010_000_999])).rejects.toThrow(`overlap application ${applicationId}`);
    // Nothing of the refused range is taken.
    await create(1, [1_010_000_000, 1_010_000_999]);
    await restore();
    expect((await create(2)).firstNumber).toBe(1_020_000_000);
    await expectDisjoint();
  });

  it.each([1, 2])(
    "home %i restored to before a range grew keeps the added numbers for the application, and the same command takes them",
    async (number) => {
      const { applicationId } = await create(number, [100, 199]);
      const restore = await rememberHome(home(number));
      await grow(applicationId, 299);
      await restore();
      await expect(create(1, [250, 260])).rejects.toThrow(`application ${applicationId} (100-299)`);
      expect(await check()).toMatchObject({
        unused: [],
        kept: [{ applicationId, firstNumber: 100, lastNumber: 299, reason: "growing" }],
      });
      expect(await grow(applicationId, 299)).toMatchObject({ lastNumber: 299 });
      expect(await check()).toMatchObject({ kept: [] });
    },
  );

  it.each([
    ["a range of home 2 grows", (on: Homes, id: ApplicationId) => grow(id, 299, on)],
    ["an administrator creates an application in home 2", (on: Homes) => create(2, [200, 299], on)],
  ])("no number is given twice when home 1 is restored while %s", async (_, work) => {
    await atEachStep(async (step) => {
      const { applicationId } = await create(2, [100, 199]);
      const restore = await rememberHome(home(1));
      const interrupted = interruptHomes(step, homes, async () => {
        await restore();
        await create(1, [250, 350]).catch(() => {});
      });
      await Promise.allSettled([work(interrupted.homes, applicationId)]);
      return { isOver: interrupted.steps() < step };
    });
  });
});

describe("home check (contract section 17)", () => {
  it("home check registers what the register lacks, keeps what an unbound home may have, and names applications with numbers in common", async () => {
    const wide = await create(1, [100, 999]);
    const inside = [await create(2, [1000, 1099]), await create(2, [1100, 1199])] as const;
    await home(1).database.run((orm) => orm.delete(numberRange));
    register.lose();
    expect(await check()).toMatchObject({
      ...{ homes: 2, applications: 3, overlaps: [] },
      registered: [{ firstNumber: 100 }, { firstNumber: 1000 }, { firstNumber: 1100 }],
    });
    expect(await check()).toMatchObject({ registered: [], unused: [], kept: [] });
    const alone = new Homes([home(1)]);
    const kept = { applicationId: inside[0].applicationId, firstNumber: 1000, reason: "home-not-bound" };
    expect((await check(alone)).kept).toContainEqual(expect.objectContaining(kept));
    // Also one behind a narrow one.
    for (const [index, { applicationId }] of inside.entries()) {
      const firstNumber = 200 + 300 * index;
      const set = { firstNumber, lastNumber: firstNumber + 99 };
      await home(2).database.run((orm) => orm.update(application).set(set).where(eq(application.id, applicationId)));
    }
    const overlaps = inside.map(({ applicationId }) => [wide.applicationId, applicationId]);
    expect(await check()).toMatchObject({ overlaps });
  });
});
