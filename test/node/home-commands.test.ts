import { eq } from "drizzle-orm";
import { describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { listApplications } from "../../src/admin/application/commands.ts";
import { Deployment } from "../../src/admin/deploy/deployment.ts";
import { askForPlaceIfNeeded, placeStep } from "../../src/admin/deploy/place.ts";
import { databaseStep } from "../../src/admin/deploy/resources.ts";
import { databaseOfNumber } from "../../src/admin/number-range/owners.ts";
import { Homes } from "../../src/admin/platform/homes.ts";
import { readTarget } from "../../src/admin/platform/target.ts";
import { loadWrangler } from "../../src/admin/platform/wrangler.ts";
import { newEventId } from "../../src/shared/identifiers.ts";
import { application, applicationHead, numberRange, webhookEvent } from "../../src/shared/schema.ts";
import { aroundSteps, clearHomes } from "./support/homes.ts";
import { localHomes } from "./support/script.ts";

const { homes, register, admin, create, json, refusal } = await localHomes();

const createIn = (home: number, ...words: string[]) => create("--home", String(home), ...words);

/** Keeps the order of the keys, which is part of what is checked. */
const jsonObject = z.record(z.string(), z.unknown());
const historyRows = z.array(z.object({ action: z.string(), actor: z.unknown() }));

describe("commands on an application of home 2 (contract sections 10 and 17)", () => {
  it("commands work in home 2 as in home 1, change nothing in home 1, and write a history row with the actor for each change (section 23)", async () => {
    const { applicationId: id } = await createIn(2, "--webhook-url", "http://localhost:9/");
    const here = await createIn(1);
    expect(id).toMatch(/^app2_[0-9a-z]{20}$/);
    const inHome1 = () => homes.first.database.run((orm) => orm.select().from(application));
    const before = await inHome1();
    const byTom = (...words: string[]) => json(...words, "--actor", "Tom");
    const keysOf = (printed: unknown) => Object.keys(jsonObject.parse(printed));

    expect(await json("application", "list")).toMatchObject([
      { applicationId: id },
      { applicationId: here.applicationId },
    ]);
    expect(await byTom("application", "update", id, "--name", "New")).toMatchObject({ name: "New" });
    const disabled = await byTom("application", "disable", id);
    expect(disabled).toMatchObject({ disabledAt: expect.any(String) });
    expect(await byTom("application", "disable", id)).toEqual(disabled);
    expect(await byTom("application", "enable", id)).toMatchObject({ disabledAt: null });

    expect(keysOf(await byTom("secret", "add", id))).toEqual([
      ...["applicationId", "secretId", "applicationSecret", "role"],
    ]);
    expect((await admin("application", "show", id)).stdout).not.toContain("bdss_");
    expect(await byTom("secret", "promote", id)).toMatchObject([{ role: "previous" }, { role: "current" }]);
    const added = await admin("secret", "add", id, "--console", "Ann Lee", "--actor", "Tom");
    expect(added.stdout).toMatch(/bdss_[\w-]{43}/);
    expect(added.stdout).toContain(`npm run -s admin -- secret retire ${id} --console 'Ann Lee'`);
    expect((await admin("secret", "list", id)).stdout).toMatch(/ operator .* Ann Lee\n/);
    await byTom("secret", "retire", id);
    await byTom("secret", "retire", id, "--console", "Ann Lee");
    expect(await byTom("key", "rotate", id)).toMatchObject({ applicationId: id });
    expect(await json("key", "list", id)).toHaveLength(2);

    expect(await json("stats", id)).toMatchObject({ applicationId: id, numbers: { size: 10_000_000 } });
    expect(await refusal("webhook", "test", id, "--wait", "0")).toContain("the service must be running");
    expect(await inHome1()).toEqual(before);

    const rows = historyRows.parse(await json("history", id));
    expect(rows.toReversed().map(({ action }) => action)).toEqual([
      ...["application:updated", "application:disabled", "application:enabled"],
      ...["secret:added", "secret:promoted", "secret:added", "secret:retired", "secret:retired"],
      "key:rotated",
    ]);
    for (const { actor } of rows) expect(actor).toEqual({ kind: "administrator", name: "Tom" });
  });

  it("commands find the home of a badge number or of an event's ID", async () => {
    const { applicationId: id, firstNumber: number } = await createIn(2, "--webhook-url", "http://localhost:9/");
    const { database } = homes.get(2);
    const [eventId, times] = [newEventId(Date.now()), { dueAt: 1, createdAt: 1 }];
    const event = { applicationId: id, event: "badge:created", payload: "{}", state: "exhausted" } as const;
    await database.run((orm) => orm.insert(webhookEvent).values({ ...event, id: eventId, ...times }));
    expect(await json("badge", "show", String(number))).toMatchObject({ state: "free", applicationId: id });
    expect(await json("badge", "show", "1")).toMatchObject({ state: "outside", applicationId: null });
    expect(await refusal("badge", "suspend", "1")).toContain("Unknown badge");
    expect(await json("webhook", "show", eventId)).toMatchObject({ applicationId: id, state: "exhausted" });
    expect(await json("webhook", "list", id, "--state", "exhausted")).toMatchObject([{ id: eventId }]);
    expect(await json("webhook", "replay", id, "--all-exhausted")).toMatchObject({ replayed: 1 });
    expect(await json("webhook", "replay", eventId)).toMatchObject({ applicationId: id });
  });

  it("a command says which home fails", async () => {
    const failing = aroundSteps(new Homes([homes.get(2)]), () => Promise.reject(new Error("D1 is down")));
    const both = new Homes([homes.first, failing.homes.first]);
    await expect(listApplications(both)).rejects.toThrow("Home 2: Unexpected: D1 is down");
    await expect(databaseOfNumber(both, 1)).rejects.toThrow("Home 2: Unexpected: D1 is down");
  });

  it.each(["application show", "secret add", "application create --name x --home 3"])(
    "a command says in one line that a home is not bound: %s",
    async (line) => {
      const words = line.split(" ");
      const id = words.includes("create") ? [] : ["app3_00000000000000000000"];
      const unbound = "There is no home 3: wrangler.toml binds no DB_3 here. ";
      expect(await refusal(...words, ...id)).toContain(unbound);
    },
  );
});

describe("home (contract section 17)", () => {
  it("home list prints each home with its applications, badges, bytes and share of 10 GB", async () => {
    await clearHomes(homes, register);
    const { applicationId } = await createIn(2);
    const counted = eq(applicationHead.applicationId, applicationId);
    await homes.get(2).database.run((orm) => orm.update(applicationHead).set({ lastOrdinal: 2 }).where(counted));
    const listed = z.array(z.looseObject({ bytes: z.number() })).parse(await json("home", "list"));
    const sizes = listed.map(({ bytes }) => ({ bytes, share: bytes / 10_000_000_000 }));
    expect(listed).toEqual([
      { home: 1, place: null, applications: 0, badges: 0, ...sizes[0] },
      { home: 2, place: null, applications: 1, badges: 2, ...sizes[1] },
    ]);
    for (const { bytes } of sizes) expect(bytes).toBeGreaterThan(10_000);
    const { stdout } = await admin("home", "list");
    expect(stdout).toMatch(/^HOME +PLACE +APPLICATIONS +BADGES +BYTES +OF 10 GB\n +1 +- .*\n +2 +- .*\n$/);
  });

  it("home check prints its findings, and exits with 1 if applications share numbers", async () => {
    const check = () => admin("home", "check");
    const well = /^2 homes, \d+ applications?\. The register of number ranges is correct\.\n$/;
    expect(await check()).toMatchObject({ code: 0, stdout: expect.stringMatching(well) });
    const { applicationId: lost } = await createIn(2);
    await homes.first.database.run((orm) => orm.delete(numberRange).where(eq(numberRange.applicationId, lost)));
    expect((await check()).stdout).toContain("registered: the register lacked it");
    const correct = { homes: 2, registered: [], unused: [], kept: [], overlaps: [] };
    expect(await json("home", "check")).toMatchObject(correct);
    const elsewhere = { firstNumber: 1_000_000_001 };
    await homes.get(2).database.run((orm) => orm.update(application).set(elsewhere).where(eq(application.id, lost)));
    const inCommon = expect.stringMatching(/applications have numbers in common[^\n]*\n$/);
    expect(await check()).toMatchObject({ code: 1, stderr: inCommon });
  });
});

describe("the place of a home (contract section 17)", () => {
  /** wrangler, as it reads a wrangler.toml with a value of HOME_1. @param id of the database; undefined: it is not made yet */
  function wranglerWith(place: string, id?: string) {
    const wrangler = loadWrangler();
    const readConfig: typeof wrangler.unstable_readConfig = (...args) => {
      const config = wrangler.unstable_readConfig(...args);
      const d1_databases = [{ binding: "DB", database_name: "badges", database_id: id }];
      return { ...config, d1_databases, vars: { ...config.vars, HOME_1: place } };
    };
    return { ...wrangler, unstable_readConfig: readConfig };
  }

  const uuid = "00000000-0000-4000-8000-000000000001";

  it.each(["weur", "location="])("a malformed place of home 1 is refused before anything is created: %s", (place) => {
    expect(() => readTarget(wranglerWith(place), "production")).toThrow(
      `HOME_1 = "${place}": write "location=weur" or "jurisdiction=eu"`,
    );
  });

  it("a new home needs a place, home 2 as well as home 1; one with a database keeps what it has, and its place never changes (contract section 17)", async () => {
    const unmade = new Deployment(wranglerWith(""), "production", null);
    for (const number of [1, 2]) {
      await expect(askForPlaceIfNeeded(unmade, { number, place: null })).rejects.toThrow(
        "Say where the data should be",
      );
      expect(await placeStep(unmade, number, null).inspect()).toMatchObject({ action: "ask where the data should be" });
    }
    const old = new Deployment(wranglerWith("", uuid), "production", null);
    expect(await askForPlaceIfNeeded(old, { number: 1, place: null })).toEqual({ number: 1, place: null });
    expect(await placeStep(old, 1, null).inspect()).toBeNull();
    const made = new Deployment(wranglerWith("location=weur", uuid), "production", null);
    for (const same of [null, "location=weur"]) expect(await placeStep(made, 1, same).inspect()).toBeNull();
    await expect(placeStep(made, 1, "jurisdiction=eu").inspect()).rejects.toThrow("a home's place never changes");
    const planned = new Deployment(wranglerWith("location=weur"), "production", null);
    expect(await placeStep(planned, 1, "jurisdiction=eu").inspect()).toMatchObject({
      action: expect.stringContaining('"jurisdiction=eu"'),
    });
  });

  it("deploy refuses a restored database outside the home's jurisdiction (contract section 17)", async () => {
    const deployment = new Deployment(wranglerWith("jurisdiction=eu", uuid), "production", null);
    const find = vi.spyOn(deployment, "find");
    find.mockResolvedValue({ uuid, name: "badges", jurisdiction: null });
    await expect(databaseStep(deployment, 1, null).inspect()).rejects.toThrow("without a jurisdiction");
    find.mockResolvedValue({ uuid, name: "badges", jurisdiction: "eu" });
    expect(await databaseStep(deployment, 1, null).inspect()).toBeNull();
  });
});
