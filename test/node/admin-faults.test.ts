import type { D1Database } from "@cloudflare/workers-types";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { describeError, UserError } from "../../src/admin/command-line/errors.ts";
import { Account } from "../../src/admin/platform/cloudflare.ts";
import { Database } from "../../src/admin/platform/database.ts";
import { missingMigrations } from "../../src/admin/platform/migrations.ts";
import { restD1 } from "../../src/admin/platform/rest-d1.ts";
import { application } from "../../src/shared/schema.ts";
import { standIn } from "../long-runs/stand-in.ts";

describe("an error line", () => {
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
