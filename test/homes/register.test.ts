import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { type ApplicationId, newApplicationId, newRandomId } from "../../src/shared/identifiers.ts";
import { HOME_RECIPIENT, type HomeCommand, type HomeResult, homeResult } from "../../src/shared/script-commands.ts";
import { putCommand, resultOf } from "../allocator/support.ts";
import { createApplication } from "../support/application.ts";
import { HOUR } from "../support/clock.ts";
import { log } from "../support/log.ts";
import { consume, DONE } from "../support/queue.ts";

const scheduler = () => env.HOME_SCHEDULER.getByName("1");

const loseRegister = () =>
  runInDurableObject(scheduler(), (_, { storage }) => {
    for (const table of ["registration", "register_copied"]) storage.sql.exec(`DELETE FROM ${table}`);
  });

beforeEach(async () => {
  await env.DB.batch(["number_range", "script_command"].map((table) => env.DB.prepare(`DELETE FROM ${table}`)));
  await loseRegister();
});

/** What home 1's scheduler does with a command that the script puts into D1. */
async function carryOut(command: HomeCommand): Promise<HomeResult> {
  const id = newRandomId();
  await env.DB.prepare(
    "INSERT INTO script_command (id, recipient, command, created_at) VALUES (?1, ?2, ?3, unixepoch() * 1000)",
  )
    .bind(id, HOME_RECIPIENT, JSON.stringify({ command }))
    .run();
  expect(await consume({ wake: HOME_RECIPIENT })).toEqual(DONE);
  return homeResult.parse(await resultIn1(id));
}

const resultIn1 = async (id: string): Promise<unknown> => {
  const result = await env.DB.prepare("SELECT result FROM script_command WHERE id = ?1").bind(id).first("result");
  return JSON.parse(String(result));
};

const register = (applicationId: ApplicationId, first: number | null, last = first) =>
  carryOut({ kind: "register", applicationId, range: first === null || last === null ? null : { first, last } });

const inD1 = async () =>
  (await env.DB.prepare(
    "SELECT application_id, first_number, last_number FROM number_range ORDER BY 2",
  ).raw()) as unknown[];

describe("the register of number ranges, which home 1's scheduler keeps (contract sections 17 and 21)", () => {
  it("the register registers numbers once, in D1 too, and repeats its result", async () => {
    const [one, other] = [newApplicationId(1), newApplicationId(2)];
    expect(await register(one, null)).toMatchObject({ kind: "registered", registration: { firstNumber: 1e9 } });
    expect(await register(one, null)).toMatchObject({ kind: "registered", registration: { firstNumber: 1e9 } });
    expect(await register(other, 1_009_999_999)).toMatchObject({ kind: "taken", owner: { applicationId: one } });
    expect(await register(other, null)).toMatchObject({ registration: { firstNumber: 1_010_000_000 } });
    expect(await inD1()).toEqual([
      [one, 1_000_000_000, 1_009_999_999],
      [other, 1_010_000_000, 1_019_999_999],
    ]);
  });

  it("the register gives a restored D1 back what it lacks before it decides, and with the tick that notices the restore", async () => {
    const [one, other] = [newApplicationId(1), newApplicationId(2)];
    await register(one, 100, 199);
    await register(one, 100, 299);
    await env.DB.prepare("UPDATE number_range SET last_number = 199").run();
    expect(await register(other, 250, 260)).toMatchObject({ kind: "taken", owner: { lastNumber: 299 } });
    expect(await inD1()).toEqual([[one, 100, 299]]);
    await scheduler().tick(1);
    await env.DB.batch([
      env.DB.prepare("DELETE FROM number_range"),
      env.DB.prepare("UPDATE heartbeat SET sequence = 0"),
    ]);
    await scheduler().tick(1);
    expect(await inD1()).toEqual([[one, 100, 299]]);
  });

  it("a register that could not be compared with a restored D1 is compared by the next tick", async () => {
    const one = newApplicationId(1);
    await register(one, 100, 199);
    await scheduler().tick(1);
    await env.DB.batch([
      env.DB.prepare("DELETE FROM number_range"),
      env.DB.prepare("ALTER TABLE number_range RENAME TO number_range_away"),
      env.DB.prepare("UPDATE heartbeat SET sequence = 0"),
    ]);
    await scheduler().tick(1);
    await env.DB.prepare("ALTER TABLE number_range_away RENAME TO number_range").run();
    await scheduler().tick(1);
    expect(await inD1()).toEqual([[one, 100, 199]]);
  });

  it("the register takes over D1's registrations when it has lost its storage", async () => {
    const one = newApplicationId(1);
    await register(one, 100, 199);
    await loseRegister();
    expect(await register(newApplicationId(2), 150)).toMatchObject({ kind: "taken", owner: { applicationId: one } });
  });

  it("the register adopts what only D1 has, and writes nothing into a D1 that lacks nothing", async () => {
    const [one, other] = [newApplicationId(1), newApplicationId(2)];
    await register(one, 100, 199);
    await env.DB.prepare("INSERT INTO number_range VALUES (?1, 300, 399, 0)").bind(other).run();
    expect(await register(one, 100, 350)).toMatchObject({ kind: "taken", owner: { applicationId: other } });
    expect(log.lines().filter(({ event }) => event === "registrations-restored")).toEqual([]);
  });

  it("a range begins where it did and never shrinks: only its end moves up (contract section 17)", async () => {
    const one = newApplicationId(1);
    await register(one, 100, 199);
    expect(await register(one, 99, 199)).toMatchObject({ kind: "taken", owner: { applicationId: one } });
    expect(await register(one, 100, 150)).toMatchObject({ kind: "registered", registration: { lastNumber: 199 } });
    expect(await register(one, 100, 200)).toMatchObject({ kind: "registered", registration: { lastNumber: 200 } });
  });

  it("the default range is the lowest block of 10,000,000 of which no number is taken (contract section 1)", async () => {
    const next = async () => {
      const result = await register(newApplicationId(1), null);
      return result.kind === "registered" ? result.registration.firstNumber : result;
    };
    for (const [first, last] of [
      [7, 999_999_999],
      [1_005_000_000, 1_005_000_000],
      [1_020_000_000, 1_029_999_999],
      [1_049_999_999, 1_050_000_000],
    ] as const) {
      expect(await register(newApplicationId(1), first, last)).toMatchObject({ kind: "registered" });
    }
    expect([await next(), await next(), await next()]).toEqual([1_010_000_000, 1_030_000_000, 1_060_000_000]);
    // The block after the last one would exceed 2^35 - 1.
    await register(newApplicationId(1), 1_070_000_000, 34_339_999_999);
    expect(await next()).toBe(34_340_000_000);
    expect(await next()).toEqual({ kind: "taken", owner: null });
  });

  it("numbers are released when they were registered 24 hours ago, and are then free for another application", async () => {
    const [one, other] = [newApplicationId(1), newApplicationId(2)];
    const clock = vi.spyOn(Date, "now");
    const release = (at: number) => {
      clock.mockReturnValue(at);
      return carryOut({ kind: "release", applicationId: one });
    };
    const registeredAt = Date.now();
    clock.mockReturnValue(registeredAt);
    await register(one, 100, 199);
    const registration = { applicationId: one, firstNumber: 100, lastNumber: 199, registeredAt };
    expect(await release(registeredAt + 24 * HOUR - 1)).toEqual({ kind: "kept", registration });
    expect(await release(registeredAt + 24 * HOUR)).toEqual({ kind: "released", registration });
    expect(await release(registeredAt + 24 * HOUR)).toEqual({ kind: "released", registration: null });
    expect(await inD1()).toEqual([]);
    expect(await register(other, 150)).toMatchObject({ kind: "registered" });
  });

  it("the register fails a command that it cannot parse, logs it, and continues", async () => {
    const unknown = newRandomId();
    await env.DB.prepare("INSERT INTO script_command VALUES (?1, 'home', '{}', unixepoch() * 1000 - 1000, NULL)")
      .bind(unknown)
      .run();
    expect(await register(newApplicationId(1), 7)).toMatchObject({ kind: "registered" });
    expect(await resultIn1(unknown)).toEqual({ kind: "failed" });
    const line = { event: "command-unreadable", home: 1, command: unknown };
    expect(log.lines()).toContainEqual(expect.objectContaining(line));
  });
});

it("a message of the queue has an allocator carry out its commands at once (contract section 21)", async () => {
  const application = await createApplication();
  const command = await putCommand(application, { kind: "block", userId: "ada" });
  expect(await consume({ wake: application.id })).toEqual(DONE);
  expect(await resultOf(command)).toMatchObject({ kind: "user", userId: "ada" });
  // It is no message about a webhook event.
  expect(log.lines().filter(({ event }) => event === "malformed-message")).toEqual([]);
});
