import type { D1Database } from "@cloudflare/workers-types";
import { eq } from "drizzle-orm";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { describeError, UserError } from "../../src/admin/command-line/errors.ts";
import type { Session } from "../../src/admin/command-line/session.ts";
import { administrator } from "../../src/admin/history/note.ts";
import { Account } from "../../src/admin/platform/cloudflare.ts";
import { Database } from "../../src/admin/platform/database.ts";
import { Homes } from "../../src/admin/platform/homes.ts";
import { missingMigrations } from "../../src/admin/platform/migrations.ts";
import { restD1 } from "../../src/admin/platform/rest-d1.ts";
import { submitAndWait } from "../../src/admin/script-command/submit.ts";
import { application, scriptCommand } from "../../src/shared/schema.ts";
import { standIn } from "../long-runs/stand-in.ts";
import { until } from "../support/until.ts";
import { aroundSteps } from "./support/homes.ts";
import { localHomes } from "./support/script.ts";

it("an error line has the platform's refusal of a token, not Drizzle's error around it", async () => {
  class RefusingAccount extends Account {
    override async call(): Promise<never> {
      throw new UserError("The API token is not valid.");
    }
  }
  const database = new Database(restD1(new RefusingAccount("account", {}), "database"));
  const refused = await database.run((orm) => orm.select().from(application)).catch((error: unknown) => error);
  expect(describeError(refused)).toBe("The API token is not valid.");
});

it("an error line has no terminal control character, even from another server's response", () => {
  expect(describeError(new UserError("It names\n\u001b[31mred\u202e."))).toBe("It names ?[31mred?.");
  expect(describeError(new Error("a\u009bb"))).toBe("Unexpected: a?b");
});

it("a step of the script that D1 does not answer is tried twelve times, also where it contains another step", async () => {
  // No pauses.
  const random = vi.spyOn(Math, "random").mockReturnValue(0);
  onTestFinished(() => random.mockRestore());
  let tries = 0;
  const prepare = () => {
    tries++;
    throw new Error("Network connection lost.");
  };
  const database = new Database(standIn<D1Database>("D1", { prepare }));
  await expect(database.run((_, d1) => missingMigrations(d1))).rejects.toThrow("The database is busy");
  expect(tries).toBe(12);
});

const { homes: both, database, create } = await localHomes();
const homes = new Homes([both.first]);

const AWAY = new UserError("The database is busy: try again in a moment.");

/** Homes of which only the first steps work. */
const workingFor = (steps: number) =>
  aroundSteps(homes, (step, take) => (step <= steps ? take() : Promise.reject(AWAY))).homes;

/** @param reopened the homes when they are opened once more */
const sessionOf = (opened: Homes, reopened: Homes): Session => ({
  homes: opened,
  output: { result() {}, note() {} },
  backend: { environment: "production" },
  actor: administrator("ann"),
  wake: async () => {},
  reopen: async () => ({
    ...{ homes: reopened, database: reopened.first.database, backend: { environment: "production" } },
    wake: async () => {},
    async close() {},
  }),
});

describe("a command that the service carries out, when D1 goes away meanwhile (contract section 21)", () => {
  const suspend = { kind: "suspend", number: 1 } as const;
  const waiting = () => database.run((orm) => orm.select().from(scriptCommand));

  it("a failed command is withdrawn, so that it does not happen later", async () => {
    const { applicationId } = await create();
    await expect(submitAndWait(sessionOf(workingFor(1), homes), applicationId, suspend)).rejects.toBe(AWAY);
    expect(await waiting()).toEqual([]);
  });

  it("Ctrl-C withdraws a command even while D1 does not respond, and says that a hanging step may bring it back", async () => {
    const { applicationId } = await create();
    const hanging = aroundSteps(homes, (step, take) => (step === 1 ? take() : new Promise(() => {}))).homes;
    const asked = submitAndWait(sessionOf(hanging, homes), applicationId, suspend);
    await until(async () => expect(await waiting()).toHaveLength(1));
    process.emit("SIGINT");
    await expect(asked).rejects.toThrow("the command is withdrawn. But D1 has not responded");
    expect(await waiting()).toEqual([]);
  });

  it("a command that was carried out has its result, although Ctrl-C comes while its row is deleted", async () => {
    const result = { kind: "user", userId: "ada", numbers: [7] } as const;
    const { applicationId } = await create();
    const hanging = aroundSteps(homes, async (step, take) => {
      const found = await take();
      if (step === 1) await database.run((orm) => orm.update(scriptCommand).set({ result: JSON.stringify(result) }));
      return step === 3 ? new Promise<never>(() => {}) : found;
    }).homes;
    const asked = submitAndWait(sessionOf(hanging, homes), applicationId, { kind: "block", userId: "ada" });
    await until(async () => expect(await waiting()).toEqual([]));
    process.emit("SIGINT");
    expect(await asked).toEqual(result);
  });

  it("a failed command that cannot be withdrawn says that it may still be carried out", async () => {
    const { applicationId } = await create();
    const away = workingFor(1);
    await expect(submitAndWait(sessionOf(away, away), applicationId, suspend)).rejects.toThrow(
      `${AWAY.message} The command waits for the service, which may still carry it out.`,
    );
    expect(await waiting()).toHaveLength(1);
    await database.run((orm) => orm.delete(scriptCommand));
  });

  it("a command that was carried out before it could be withdrawn has its result", async () => {
    const result = { kind: "user", userId: "ada", numbers: [7] } as const;
    const { applicationId } = await create();
    const asked = submitAndWait(sessionOf(workingFor(2), homes), applicationId, { kind: "block", userId: "ada" });
    for (let isStored = false; !isStored; ) {
      const set = { result: JSON.stringify(result) };
      const { meta } = await database.run((orm) =>
        orm.update(scriptCommand).set(set).where(eq(scriptCommand.recipient, applicationId)),
      );
      isStored = meta.changes > 0;
    }
    expect(await asked).toEqual(result);
  });
});
