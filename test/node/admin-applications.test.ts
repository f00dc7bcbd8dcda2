import { eq } from "drizzle-orm";
import { beforeEach, describe, expect, it } from "vitest";
import { listApplications, setDisabled } from "../../src/admin/application/commands.ts";
import { createApplication } from "../../src/admin/application/create.ts";
import { findApplication } from "../../src/admin/application/record.ts";
import type { NewApplication } from "../../src/admin/application/rows.ts";
import { updateApplication } from "../../src/admin/application/update.ts";
import { applicationId } from "../../src/shared/identifiers.ts";
import { application, applicationSecret, signingKey, webhookEvent } from "../../src/shared/schema.ts";
import { clearHomes } from "./support/homes.ts";
import { localHomes } from "./support/script.ts";

const { homes, database } = await localHomes();

beforeEach(() => clearHomes(homes));

const create = (changes: Partial<NewApplication> = {}) => createApplication(homes, { name: "Test", ...changes });
const createRange = (firstNumber: number, lastNumber: number) =>
  create({ range: { first: firstNumber, last: lastNumber } });

const UNKNOWN = applicationId.parse("app_00000000000000000000");

describe("number ranges (contract section 10)", () => {
  it("are by default the lowest free block of 10,000,000 from 1,000,000,000 on", async () => {
    await createRange(1_010_000_005, 1_010_000_005);
    const made = [await create(), await create()];
    expect(made.map(({ firstNumber, lastNumber }) => [firstNumber, lastNumber])).toEqual([
      [1_000_000_000, 1_009_999_999],
      [1_020_000_000, 1_029_999_999],
    ]);
  });

  it("fill a gap first", async () => {
    await createRange(1_000_000_000, 1_009_999_999);
    await createRange(1_020_000_000, 1_035_000_000);
    const made = [await create(), await create()];
    expect(made.map(({ firstNumber }) => firstNumber)).toEqual([1_010_000_000, 1_040_000_000]);
  });

  it("may lie anywhere from 1 to 2^53 - 1", async () => {
    const { applicationId } = await createRange(Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER);
    await createRange(1, 1);
    expect(await findApplication(database, applicationId)).toMatchObject({
      firstNumber: Number.MAX_SAFE_INTEGER - 1,
      lastNumber: Number.MAX_SAFE_INTEGER,
    });
  });

  it.each([
    [100, 199, "the same"],
    [150, 160, "inside"],
    [50, 250, "around"],
    [50, 100, "touching the first number"],
    [199, 250, "touching the last number"],
  ])("refuse %i-%i: %s, and store nothing", async (first, last) => {
    const { applicationId } = await createRange(100, 199);
    await createRange(300, 399);
    await expect(createRange(first, last)).rejects.toThrow(
      `Numbers ${first}-${last} overlap application ${applicationId} (100-199)`,
    );
    const counts = await database.run((orm) =>
      orm.batch([orm.select().from(application), orm.select().from(applicationSecret), orm.select().from(signingKey)]),
    );
    expect(counts.map((rows) => rows.length)).toEqual([2, 2, 2]);
  });

  it("are refused when no block is free", async () => {
    await createRange(1_000_000_000, Number.MAX_SAFE_INTEGER);
    await expect(create()).rejects.toThrow("No block of numbers is free");
  });

  it("never overlap when several are created at once", async () => {
    const explicit = Array.from({ length: 4 }, () => createRange(500, 599));
    const settled = await Promise.allSettled([...explicit, create(), create(), create()]);
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(4);
    const ranges = await listApplications(homes);
    expect(ranges.map(({ firstNumber }) => firstNumber)).toEqual([500, 1e9, 1.01e9, 1.02e9]);
  });

  it("grow only at their end, and not into another", async () => {
    const { applicationId } = await createRange(100, 199);
    await createRange(300, 399);
    const update = (changes: { firstNumber?: number; lastNumber?: number }) =>
      updateApplication(homes, applicationId, changes);
    expect(await update({ lastNumber: 299, firstNumber: 100 })).toMatchObject({ firstNumber: 100, lastNumber: 299 });
    await expect(update({ lastNumber: 300 })).rejects.toThrow("Numbers 100-300 overlap application");
    await expect(update({ lastNumber: 500 })).rejects.toThrow("(300-399)");
    await expect(update({ lastNumber: 298 })).rejects.toThrow("ends at 299 and can only grow");
    await expect(update({ firstNumber: 99, lastNumber: 299 })).rejects.toThrow("starts at 100 and stays there");
    expect(await update({ lastNumber: 299 })).toMatchObject({ lastNumber: 299 });
  });

  it("do not grow into each other when two grow at once", async () => {
    const low = await createRange(100, 199);
    const settled = await Promise.allSettled([
      updateApplication(homes, low.applicationId, { lastNumber: 250 }),
      createRange(240, 260),
    ]);
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });
});

describe("application update (contract section 10)", () => {
  it("changes only what is given", async () => {
    const { applicationId } = await create({ requireSecret: true, signatureLifetimeSeconds: 60 });
    const before = await findApplication(database, applicationId);
    await updateApplication(homes, applicationId, {
      name: "New",
      signatureLifetimeSeconds: null,
      reuseAfterSeconds: 5,
    });
    expect(await findApplication(database, applicationId)).toEqual({
      ...before,
      name: "New",
      signatureLifetimeSeconds: null,
      reuseAfterSeconds: 5,
    });
  });

  it("changes nothing when the range cannot grow", async () => {
    const { applicationId } = await createRange(100, 199);
    await createRange(200, 299);
    const before = await findApplication(database, applicationId);
    await expect(updateApplication(homes, applicationId, { name: "New", lastNumber: 250 })).rejects.toThrow("overlap");
    expect(await findApplication(database, applicationId)).toEqual(before);
  });

  it("is refused when nothing is given, and for an unknown application", async () => {
    await expect(updateApplication(homes, UNKNOWN, {})).rejects.toThrow("Nothing to change");
    const gone = updateApplication(homes, UNKNOWN, { name: "x" });
    await expect(gone).rejects.toThrow("There is no application app_00000000000000000000");
  });

  it("does nothing when an application is disabled or enabled twice", async () => {
    const { applicationId } = await create();
    const { disabledAt } = await setDisabled(database, applicationId, true);
    expect(disabledAt).not.toBeNull();
    expect((await setDisabled(database, applicationId, true)).disabledAt).toBe(disabledAt);
    expect((await setDisabled(database, applicationId, false)).disabledAt).toBeNull();
  });

  it("releases a held endpoint when the URL is set, and its events are due at once, oldest first", async () => {
    const { applicationId } = await create({ webhookUrl: "https://a.example.com/" });
    const hold = { webhookHeldAt: 1, webhookFailingSince: 1, webhookFailures: 12 };
    await database.run((orm) => orm.update(application).set(hold).where(eq(application.id, applicationId)));
    const row = { applicationId, event: "badge:created", payload: "{}", attempts: 3, dueAt: 9, createdAt: 0 } as const;
    await database.run((orm) =>
      orm.insert(webhookEvent).values([
        { ...row, id: "evt_2", state: "held" },
        { ...row, id: "evt_1", state: "held" },
        { ...row, id: "evt_3", state: "exhausted" },
      ]),
    );
    await updateApplication(homes, applicationId, { name: "Still held" });
    expect((await findApplication(database, applicationId)).webhookHeldAt).toBe(1);
    await updateApplication(homes, applicationId, { webhookUrl: "https://b.example.com/" });
    expect(await findApplication(database, applicationId)).toMatchObject({
      webhookUrl: "https://b.example.com/",
      webhookHeldAt: null,
      webhookFailingSince: null,
      webhookFailures: 0,
    });
    const pending = await database.run((orm) =>
      orm.select().from(webhookEvent).where(eq(webhookEvent.state, "pending")).orderBy(webhookEvent.id),
    );
    expect(pending.map(({ id, attempts, dueAt }) => [id, attempts, dueAt])).toEqual([
      ["evt_1", 0, 0],
      ["evt_2", 0, 0],
    ]);
  });
});
