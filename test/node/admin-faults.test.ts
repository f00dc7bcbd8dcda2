import { sql } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { createApplication } from "../../src/admin/application/create.ts";
import { describeError, UserError } from "../../src/admin/command-line/errors.ts";
import { Account } from "../../src/admin/platform/cloudflare.ts";
import { Database } from "../../src/admin/platform/database.ts";
import type { Homes } from "../../src/admin/platform/homes.ts";
import { restD1 } from "../../src/admin/platform/rest-d1.ts";
import { listEvents } from "../../src/admin/webhook/commands.ts";
import { testEndpoint } from "../../src/admin/webhook/test.ts";
import { application, webhookEvent } from "../../src/shared/schema.ts";
import { aroundSteps } from "./support/homes.ts";
import { localHomes } from "./support/script.ts";

const { homes, submit } = await localHomes();

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

describe("webhook test", () => {
  it("webhook test reports an event that was sent at the last moment", async () => {
    const { applicationId } = await createApplication(homes, submit, {
      name: "Late",
      webhookUrl: "https://late.test/",
    });
    const { database } = homes.first;
    const counted = aroundSteps(homes, (_, take) => take());
    const test = (on: Homes) => testEndpoint(on.first.database, applicationId, 0);
    await expect(test(counted.homes)).rejects.toThrow("not sent in time");
    for (let step = 4; step <= counted.steps(); step++) {
      const sent = aroundSteps(homes, async (number, take) => {
        const delivered = { state: "delivered", lastStatus: 204 } as const;
        if (number === step) await database.run((orm) => orm.update(webhookEvent).set(delivered));
        return take();
      });
      const result = await test(sent.homes).catch((error: unknown) => error);
      const isLeft = (await database.run((orm) => orm.$count(webhookEvent))) > 0;
      expect(result).toMatchObject(
        isLeft ? { delivered: true, status: 204 } : { message: expect.stringContaining("not sent in time") },
      );
      await database.run((orm) => orm.delete(webhookEvent));
    }
  });
});

describe("webhook list", () => {
  it("webhook list reads the events of a dead receiver in small statements", async () => {
    const { applicationId } = await createApplication(homes, submit, { name: "Dead" });
    const insert = (from: number, to: number, state: string) => sql`
      INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
      WITH RECURSIVE numbers(n) AS (SELECT ${from} UNION ALL SELECT n + 1 FROM numbers WHERE n < ${to})
      SELECT ${applicationId}, 'evt_' || printf('%026d', n), 'badge:created', '{}', ${state}, 1, n FROM numbers`;
    const { database } = homes.first;
    await database.run((orm) => orm.run(insert(1, 2, "delivered")));
    await database.run((orm) => orm.run(insert(3, 2500, "pending")));
    for (const [state, limit, expected] of [
      ["delivered", 5, [2, 1]],
      ["pending", 2, [2500, 2499]],
    ] as const) {
      const counted = aroundSteps(homes, (_, take) => take());
      const listed = await listEvents(counted.homes.first.database, applicationId, { state, limit });
      expect(listed.map(({ id }) => Number(id.slice(4)))).toEqual(expected);
      expect(counted.steps()).toBeGreaterThan(state === "delivered" ? 3 : 2);
    }
  });
});
