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

/** A command that registers 100 numbers for an application that does not exist. */
const newRegistration = (inHome: number, first: number) => {
  const range = { first, last: first + 99 };
  return { kind: "register", applicationId: newApplicationId(inHome), range } as const;
};

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
  it("the default range is the lowest free block of all homes, also between other ranges, and is registered in home 1", async () => {
    await create(1, [1_010_000_005, 1_010_000_005]);
    await create(2, [1_030_000_000, 1_045_000_000]);
    const made = [await create(2), await create(1), await create(2)];
    expect(made.map(({ firstNumber }) => firstNumber)).toEqual([1_000_000_000, 1_020_000_000, 1_050_000_000]);
    expect(made.map(({ firstNumber, lastNumber }) => lastNumber - firstNumber)).toEqual([
      9_999_999, 9_999_999, 9_999_999,
    ]);
    expect(made.map(({ applicationId }) => applicationId.replace(/_.*/, ""))).toEqual(["app2", "app", "app2"]);
    for (const { applicationId, firstNumber, lastNumber } of made) {
      expect(await registered()).toContainEqual([applicationId, firstNumber, lastNumber]);
    }
    expect(await home(2).database.run((orm) => orm.select().from(numberRange))).toEqual([]);
  });

  it("a range may be anywhere from 1 to 2^53 - 1, and creating an application is refused when no block is free", async () => {
    const lowest = await create(1, [1, 1]);
    const highest = await create(2, [1_000_000_000, Number.MAX_SAFE_INTEGER]);
    expect([lowest.firstNumber, highest.lastNumber]).toEqual([1, Number.MAX_SAFE_INTEGER]);
    await expect(create(1)).rejects.toThrow("No block of numbers up to 34359738367 is free");
  });

  it.each([
    [100, 199, "the same", 1, 1],
    [150, 160, "inside", 1, 2],
    [50, 250, "around", 2, 1],
    [50, 100, "touching the first number", 2, 2],
    [199, 250, "touching the last number", 1, 2],
  ])(
    "the range %i-%i is refused (%s) in homes %i and %i, and nothing is stored",
    async (first, last, _, one, other) => {
      const { applicationId } = await create(one, [100, 199]);
      await expect(create(other, [first, last])).rejects.toThrow(
        `Numbers ${first}-${last} overlap application ${applicationId} (100-199)`,
      );
      expect(await registered()).toEqual([[applicationId, 100, 199]]);
      await expectDisjoint();
      await create(other, [200, 250]);
    },
  );

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

  it("administrators who create applications at once get different numbers", async () => {
    const explicit = [1, 2, 1, 2].map((number) => create(number, [500, 599]));
    const settled = await Promise.allSettled([...explicit, create(1), create(2), create(2), create(1)]);
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
    expect((await ranges()).map(([first]) => first)).toEqual([500, 1e9, 1.01e9, 1.02e9, 1.03e9]);
    await expectDisjoint();
  });

  it("a range does not grow into the range that another administrator creates", async () => {
    await atEachStep(async (step) => {
      const { applicationId } = await create(2, [100, 199]);
      const racing = interruptHomes(step, homes, () => create(1, [250, 350]).catch(() => {}));
      await Promise.allSettled([grow(applicationId, 299, racing.homes)]);
      return { isOver: racing.steps() < step };
    });
  });
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
    const command = newRegistration(2, 100);
    await hoursAgo(hours, () => register.submit(command));
    return command.applicationId;
  }

  it("a creation that dies leaves a registration that home check reports after 24 hours and only --release clears", async () => {
    const id = await registerOnly(23.9);
    await expect(create(1, [100, 199])).rejects.toThrow(
      `Numbers 100-199 overlap those registered for ${id} (100-199), which does not exist in its home`,
    );
    expect(await check()).toMatchObject({ unused: [], kept: [{ applicationId: id, reason: "recent" }] });
    await expect(release(id)).rejects.toThrow("less than 24 hours ago");
    await clearHomes(homes, register);
    const old = await registerOnly(24.1);
    expect(await check()).toMatchObject({ unused: [{ applicationId: old, firstNumber: 100 }], kept: [] });
    await expect(create(1, [100, 199])).rejects.toThrow(old);
    expect(await release(old)).toEqual([expect.stringContaining("phones and doors may still hold numbers 100-199")]);
    expect(await check()).toMatchObject({ unused: [], kept: [] });
    await create(1, [100, 199]);
  });

  it("home check --release refuses numbers of an existing application, and numbers that are not registered", async () => {
    await register.submit(newRegistration(2, 500));
    const { applicationId } = await create(2, [100, 199]);
    await expect(release(applicationId)).rejects.toThrow("exists, so its numbers stay registered");
    await expect(release(newApplicationId(1))).rejects.toThrow("No numbers are registered");
    await expect(release(newApplicationId(9))).rejects.toThrow("There is no home 9");
    expect(await registered()).toHaveLength(2);
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
    expect(await registered()).toEqual([]);
    await expect(create(1, [1_009_999_000, 1_010_000_999])).rejects.toThrow(`overlap application ${applicationId}`);
    // Nothing of the refused range is taken.
    await create(1, [1_010_000_000, 1_010_000_999]);
    await restore();
    expect((await create(1)).firstNumber).toBe(1_020_000_000);
    await restore();
    expect((await create(2)).firstNumber).toBe(1_030_000_000);
    await expectDisjoint();
  });

  it("home 1 restored to before its own application gives other numbers to an application created again", async () => {
    const restore = await rememberHome(home(1));
    const lost = await create(1);
    await restore();
    expect((await create(1)).firstNumber).toBe(1_010_000_000);
    expect(await registered()).toContainEqual([lost.applicationId, 1_000_000_000, 1_009_999_999]);
    await expect(create(2, [1_005_000_000, 1_005_000_001])).rejects.toThrow(`registered for ${lost.applicationId}`);
  });

  it("home 1 restored to before a range grew gives the added numbers to no other application", async () => {
    const { applicationId } = await create(1, [100, 199]);
    const restore = await rememberHome(home(1));
    await grow(applicationId, 299);
    await restore();
    await expect(create(1, [250, 260])).rejects.toThrow(`overlap application ${applicationId} (100-299)`);
    await expect(create(2, [250, 260])).rejects.toThrow(`overlap application ${applicationId} (100-299)`);
    expect(await check()).toMatchObject({ kept: [{ applicationId, lastNumber: 299, reason: "growing" }] });
    expect(await grow(applicationId, 250)).toMatchObject({ lastNumber: 250 });
    expect(await registered()).toEqual([[applicationId, 100, 299]]);
  });

  it("home 2 restored to before an application keeps its numbers registered", async () => {
    const restore = await rememberHome(home(2));
    const { applicationId } = await create(2);
    await restore();
    expect(await registered()).toEqual([[applicationId, 1_000_000_000, 1_009_999_999]]);
    expect((await create(2)).firstNumber).toBe(1_010_000_000);
    expect((await create(1)).firstNumber).toBe(1_020_000_000);
  });

  it("home 2 restored to before a range grew keeps the added numbers for the application, and the same command takes them", async () => {
    const { applicationId } = await create(2, [100, 199]);
    const restore = await rememberHome(home(2));
    await grow(applicationId, 299);
    await restore();
    await expect(create(1, [250, 260])).rejects.toThrow(`application ${applicationId} (100-299)`);
    expect(await check()).toMatchObject({
      unused: [],
      kept: [{ applicationId, firstNumber: 100, lastNumber: 299, reason: "growing" }],
    });
    expect(await grow(applicationId, 299)).toMatchObject({ lastNumber: 299 });
    expect(await check()).toMatchObject({ kept: [] });
  });

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
  it("home check keeps and lists the registrations of an unbound home", async () => {
    const { applicationId } = await create(2, [100, 199]);
    const alone = new Homes([home(1)]);
    expect(await check(alone)).toMatchObject({
      homes: 1,
      unused: [],
      kept: [{ applicationId, firstNumber: 100, lastNumber: 199, reason: "home-not-bound" }],
    });
    expect(await registered()).toHaveLength(1);
    await expect(updateApplication(alone, submitOn(alone), applicationId, { name: "x" })).rejects.toThrow(
      "There is no home 2",
    );
  });

  it("home check names every application inside a wide range, also one behind a narrow one", async () => {
    const wide = await create(1, [100, 999]);
    const inside = [await create(2, [1000, 1099]), await create(2, [1100, 1199])] as const;
    const move = ({ applicationId }: (typeof inside)[number], firstNumber: number) =>
      home(2).database.run((orm) =>
        orm
          .update(application)
          .set({ firstNumber, lastNumber: firstNumber + 99 })
          .where(eq(application.id, applicationId)),
      );
    await move(inside[0], 200);
    await move(inside[1], 500);
    const overlaps = inside.map(({ applicationId }) => [wide.applicationId, applicationId]);
    expect(await check()).toMatchObject({ overlaps });
  });

  it("home check registers numbers that the register lacks, and names an application whose numbers another one has", async () => {
    const one = await create(1, [100, 199]);
    const other = await create(2, [300, 399]);
    await home(1).database.run((orm) => orm.delete(numberRange));
    register.lose();
    const numbers = { firstNumber: 100, lastNumber: 199 };
    expect(await check()).toMatchObject({
      homes: 2,
      applications: 2,
      registered: [
        { applicationId: one.applicationId, ...numbers },
        { applicationId: other.applicationId, firstNumber: 300 },
      ],
      overlaps: [],
    });
    expect(await check()).toMatchObject({ registered: [], unused: [], kept: [] });
    const grown = eq(application.id, other.applicationId);
    await register.submit(newRegistration(1, 400));
    await home(2).database.run((orm) => orm.update(application).set({ lastNumber: 450 }).where(grown));
    expect(await check()).toMatchObject({ registered: [], overlaps: [[expect.any(String), other.applicationId]] });
  });
});

describe("home 1's scheduler (contract section 17)", () => {
  it("the scheduler sends D1 the registrations that it decided while D1 failed", async () => {
    const { database } = home(1);
    const drop = (name: string) => database.run((_, d1) => d1.prepare(`DROP TRIGGER ${name}`).run());
    await database.run((_, d1) =>
      d1
        .prepare("CREATE TRIGGER away BEFORE INSERT ON number_range BEGIN SELECT raise(ABORT, 'D1 is away'); END")
        .run(),
    );
    await expect(register.submit(newRegistration(1, 500))).rejects.toThrow();
    await drop("away");
    await expect(create(2, [500, 500])).rejects.toThrow("overlap those registered for");
    expect(await registered()).toEqual([[expect.any(String), 500, 599]]);
  });
});
