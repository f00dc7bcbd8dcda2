import { eq, sql } from "drizzle-orm";
import { beforeEach, describe, expect, it } from "vitest";
import { listApplications } from "../../src/admin/application/commands.ts";
import { createApplication } from "../../src/admin/application/create.ts";
import { updateApplication } from "../../src/admin/application/update.ts";
import { checkHomes } from "../../src/admin/home/check.ts";
import { listRegistrations } from "../../src/admin/number-range/owners.ts";
import { Homes } from "../../src/admin/platform/homes.ts";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import { application, applicationSecret, numberRange, signingKey } from "../../src/shared/schema.ts";
import { aroundSteps, clearHomes, FIRST_STEP, interruptHomes, killIn, rememberHome } from "./support/homes.ts";
import { localHomes } from "./support/script.ts";

/** Two local homes. */
const { homes } = await localHomes();

beforeEach(() => clearHomes(homes));

const create = (home: number, ends?: readonly [number, number], on: Homes = homes) =>
  createApplication(on, { name: "Test", home, range: ends && { first: ends[0], last: ends[1] } });
const grow = (id: ApplicationId, lastNumber: number, on: Homes = homes) => updateApplication(on, id, { lastNumber });

const home = (number: number) => homes.numbered(number);

/** Tries a command that something happens to at each of its steps, one after the other, until it has fewer. */
async function atEachStep(attempt: (step: number) => Promise<{ isOver: boolean }>): Promise<void> {
  for (let step = FIRST_STEP; ; step++) {
    await clearHomes(homes);
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
  await homes.everywhere(async ({ database }) => {
    const tables = [application, applicationSecret, signingKey];
    const counts = await Promise.all(tables.map((table) => database.run((orm) => orm.$count(table))));
    expect(new Set(counts).size).toBe(1);
  });
}

const registered = async (): Promise<[ApplicationId, number, number][]> =>
  (await listRegistrations(homes)).map((row) => [row.applicationId, row.firstNumber, row.lastNumber]);

/** Makes it seem that all that is registered was registered so many hours ago. */
const age = (hours: number) =>
  home(1).database.run((orm) =>
    orm.update(numberRange).set({ registeredAt: sql`registered_at - ${hours * 3_600_000}` }),
  );

describe("number ranges (contract sections 10 and 17)", () => {
  it("are by default the lowest free block of all homes, between others too, and are registered in home 1", async () => {
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

  it("may lie anywhere from 1 to 2^53 - 1, and are refused when no block is free", async () => {
    const lowest = await create(1, [1, 1]);
    const highest = await create(2, [1_000_000_000, Number.MAX_SAFE_INTEGER]);
    expect([lowest.firstNumber, highest.lastNumber]).toEqual([1, Number.MAX_SAFE_INTEGER]);
    await expect(create(1)).rejects.toThrow("No block of numbers is free");
  });

  it.each([
    [100, 199, "the same", 1, 1],
    [150, 160, "inside", 1, 2],
    [50, 250, "around", 2, 1],
    [50, 100, "touching the first number", 2, 2],
    [199, 250, "touching the last number", 1, 2],
  ])("refuse %i-%i: %s, in homes %i and %i, and store nothing", async (first, last, _, one, other) => {
    const { applicationId } = await create(one, [100, 199]);
    await expect(create(other, [first, last])).rejects.toThrow(
      `Numbers ${first}-${last} overlap application ${applicationId} (100-199)`,
    );
    expect(await registered()).toEqual([[applicationId, 100, 199]]);
    await expectDisjoint();
    await create(other, [200, 250]);
  });

  it("grow in their home only, at their end, into numbers that no home has, and are registered before", async () => {
    const { applicationId: id } = await create(2, [100, 199]);
    const neighbour = await create(1, [300, 399]);
    const overlap = (last: number) => `Numbers 100-${last} overlap application ${neighbour.applicationId} (300-399)`;
    for (const last of [300, 500]) await expect(grow(id, last)).rejects.toThrow(overlap(last));
    await updateApplication(homes, id, { firstNumber: 100, lastNumber: 299 });
    expect(await registered()).toContainEqual([id, 100, 299]);
    await expect(grow(id, 298)).rejects.toThrow("ends at 299 and can only grow");
    await expect(updateApplication(homes, id, { firstNumber: 99 })).rejects.toThrow("starts at 100 and stays there");
    await expect(create(1, [250, 260])).rejects.toThrow(`application ${id} (100-299)`);
    expect(await grow(id, 299)).toMatchObject({ firstNumber: 100, lastNumber: 299 });
    expect(await grow(neighbour.applicationId, 499)).toMatchObject({ lastNumber: 499 });
  });
});

describe("administrators who race (contract section 17)", () => {
  it.each([1, 2])("never get the same numbers, wherever one overtakes the one of home %i", async (mine) => {
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
  });

  it("get different numbers when several create at once", async () => {
    const explicit = [1, 2, 1, 2].map((number) => create(number, [500, 599]));
    const settled = await Promise.allSettled([...explicit, create(1), create(2), create(2), create(1)]);
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
    expect((await ranges()).map(([first]) => first)).toEqual([500, 1e9, 1.01e9, 1.02e9, 1.03e9]);
    await expectDisjoint();
  });

  it("do not grow into what the other one creates", async () => {
    await atEachStep(async (step) => {
      const { applicationId } = await create(2, [100, 199]);
      const racing = interruptHomes(step, homes, () => create(1, [250, 350]).catch(() => {}));
      await Promise.allSettled([grow(applicationId, 299, racing.homes)]);
      return { isOver: racing.steps() < step };
    });
  });
});

describe("a command that dies half-way (contract section 17)", () => {
  it.each([1, 2])("creates all or nothing in home %i, and its numbers go to nobody else meanwhile", async (number) => {
    await atEachStep(async (step) => {
      const died = await create(number, [100, 199], killIn(step, homes).homes).catch(String);
      if (typeof died !== "string") return { isOver: true };
      expect(died).toContain("killed");
      await expectDisjoint();
      const isRegistered = (await registered()).length > 0;
      const [second] = await Promise.allSettled([create(3 - number, [150, 250])]);
      expect(second.status).toBe(isRegistered ? "rejected" : "fulfilled");
      expect((await create(1)).firstNumber).toBe(1_000_000_000);
      return { isOver: false };
    });
  });

  it("leaves a registration that only home check clears, when it is over 24 hours old", async () => {
    // 2 steps for the sealing key and the other home, then the registration.
    const dying = killIn(3, homes);
    await expect(create(2, [100, 199], dying.homes)).rejects.toThrow("killed");
    const [[id] = [undefined]] = await registered();
    expect(id).toMatch(/^app2_/);
    await expect(create(1, [100, 199])).rejects.toThrow(
      `Numbers 100-199 overlap those registered for ${id} (100-199), whose creation has not finished`,
    );
    await age(23.9);
    expect(await checkHomes(homes)).toMatchObject({ cleared: [], kept: [{ applicationId: id, reason: "recent" }] });
    await expect(create(1, [100, 199])).rejects.toThrow("24 hours");
    await age(0.2);
    expect(await checkHomes(homes)).toMatchObject({ cleared: [{ applicationId: id, firstNumber: 100 }], kept: [] });
    await create(1, [100, 199]);
  });

  it.each([1, 2])("does not use numbers in home %i that were cleared while its computer slept", async (number) => {
    // Two days go by before the application is inserted: the last step in home 1; in home 2 one more reads the register.
    const steps = aroundSteps(homes, (_, take) => take());
    await create(number, [100, 199], steps.homes);
    await clearHomes(homes);
    const sleeping = interruptHomes(steps.steps() - (number - 1), homes, async () => {
      await age(48);
      expect(await checkHomes(homes)).toMatchObject({ cleared: [{ firstNumber: 100 }] });
      await create(3 - number, [100, 199]);
    });
    await expect(create(number, [100, 199], sleeping.homes)).rejects.toThrow(
      /overlap application|run the command again/,
    );
    await expectDisjoint();
    expect(await ranges()).toEqual([[100, 199]]);
  });

  it("has grown or not, and the same command takes the numbers", async () => {
    await atEachStep(async (step) => {
      const { applicationId } = await create(2, [100, 199]);
      const died = await grow(applicationId, 299, killIn(step, homes).homes).catch(String);
      if (typeof died !== "string") return { isOver: true };
      await create(1, [250, 350]).catch(() => {});
      await expectDisjoint();
      await Promise.allSettled([grow(applicationId, 299)]);
      await expectDisjoint();
      await age(48);
      await checkHomes(homes);
      expect((await registered()).map(([id]) => id)).toContain(applicationId);
      return { isOver: false };
    });
  });
});

describe("one home that was restored alone (contract section 17)", () => {
  it("home 1, to before an application of home 2: its numbers are not given again", async () => {
    const restore = await rememberHome(home(1));
    const { applicationId } = await create(2);
    await restore();
    expect(await registered()).toEqual([]);
    await expect(create(1, [1_009_999_000, 1_010_000_999])).rejects.toThrow(`overlap application ${applicationId}`);
    // Nothing of the refused range is taken.
    await create(1, [1_010_000_000, 1_010_000_999]);
    await restore();
    expect((await create(1)).firstNumber).toBe(1_010_000_000);
    await restore();
    expect((await create(2)).firstNumber).toBe(1_010_000_000);
    await expectDisjoint();
  });

  it("home 1, to before applications of home 2 grew and were created: home check registers them", async () => {
    const grown = await create(2, [100, 199]);
    const restore = await rememberHome(home(1));
    await grow(grown.applicationId, 299);
    const created = await create(2, [500, 599]);
    await restore();
    await expect(create(1, [250, 260])).rejects.toThrow(`overlap application ${grown.applicationId} (100-299)`);
    await restore();
    await expect(grow(grown.applicationId, 550)).rejects.toThrow(`overlap application ${created.applicationId}`);
    await restore();
    expect(await checkHomes(homes)).toMatchObject({
      homes: 2,
      applications: 2,
      registered: [{ applicationId: grown.applicationId, lastNumber: 299 }, { applicationId: created.applicationId }],
      cleared: [],
      overlaps: [],
    });
    expect(await registered()).toEqual([
      [grown.applicationId, 100, 299],
      [created.applicationId, 500, 599],
    ]);
    expect(await checkHomes(homes)).toMatchObject({ registered: [], cleared: [], kept: [] });
  });

  it("home 2, to before an application: its numbers stay registered", async () => {
    const restore = await rememberHome(home(2));
    const { applicationId } = await create(2);
    await restore();
    expect(await registered()).toEqual([[applicationId, 1_000_000_000, 1_009_999_999]]);
    expect((await create(2)).firstNumber).toBe(1_010_000_000);
    expect((await create(1)).firstNumber).toBe(1_020_000_000);
  });

  it("home 2, to before a range grew: the rest stays the application's, and the same command takes it", async () => {
    const { applicationId } = await create(2, [100, 199]);
    const restore = await rememberHome(home(2));
    await grow(applicationId, 299);
    await restore();
    await expect(create(1, [250, 260])).rejects.toThrow(`application ${applicationId} (100-299)`);
    expect(await checkHomes(homes)).toMatchObject({
      cleared: [],
      kept: [{ applicationId, firstNumber: 100, lastNumber: 299, reason: "growing" }],
    });
    expect(await grow(applicationId, 299)).toMatchObject({ lastNumber: 299 });
    expect(await checkHomes(homes)).toMatchObject({ kept: [] });
  });

  it.each([
    ["a range of home 2 grows", (on: Homes, id: ApplicationId) => grow(id, 299, on)],
    ["an administrator creates an application in home 2", (on: Homes) => create(2, [200, 299], on)],
  ])("home 1, while %s", async (_, work) => {
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
  it("keeps what is registered for a home that is not bound, and says so", async () => {
    const { applicationId } = await create(2, [100, 199]);
    await age(48);
    const alone = new Homes([home(1)]);
    expect(await checkHomes(alone)).toMatchObject({
      homes: 1,
      cleared: [],
      kept: [{ applicationId, firstNumber: 100, lastNumber: 199, reason: "home-not-bound" }],
    });
    expect(await registered()).toHaveLength(1);
    await expect(updateApplication(alone, applicationId, { name: "x" })).rejects.toThrow("There is no home 2");
  });

  it("names every application inside a wide range, one behind a narrow one too", async () => {
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
    expect(await checkHomes(homes)).toMatchObject({ overlaps });
  });
});

describe("a deployment with one home (contract section 17)", () => {
  it("registers in the transaction that creates or grows, one round trip after it has read the clock", async () => {
    const alone = aroundSteps(new Homes([home(1)]), (_, take) => take());
    const { applicationId } = await create(1, [100, 199], alone.homes);
    expect(alone.steps()).toBe(2);
    await grow(applicationId, 299, alone.homes);
    expect(alone.steps()).toBe(4);
    expect(await registered()).toEqual([[applicationId, 100, 299]]);
    await expect(create(1, [250, 350], alone.homes)).rejects.toThrow("overlap");
    expect(await registered()).toHaveLength(1);
  });
});
