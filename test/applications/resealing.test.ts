import { env } from "cloudflare:workers";
import { drizzle } from "drizzle-orm/d1";
import { describe, expect, it } from "vitest";
import { deviceOf } from "../../src/applications/devices.ts";
import { resealSome } from "../../src/applications/resealing.ts";
import { SealingKeys } from "../../src/applications/sealing-keys.ts";
import { Database } from "../../src/storage/database.ts";
import { application, applicationSecret, sealingKey, signingKey } from "../../src/storage/schema.ts";
import { sweep } from "../../src/sweep.ts";
import { createApplication } from "../support/application.ts";
import { testContext } from "../support/context.ts";
import { requestBadge, sign } from "../support/http.ts";

const orm = drizzle(env.DB);

/** What `sealing-key rotate` does for D1. */
async function addSealingKey(version: number): Promise<void> {
  const publicKey = env.TEST_SEALING_PUBLIC_KEYS[version - 1];
  if (publicKey === undefined) throw new Error("no such test key");
  await orm.insert(sealingKey).values({ version, publicKey, createdAt: Date.now() }).onConflictDoNothing();
}

async function versions(): Promise<number[]> {
  const rows = await Promise.all(
    [application, applicationSecret, signingKey].map((table) => orm.select({ v: table.sealingVersion }).from(table)),
  );
  return [...new Set(rows.flat().map(({ v }) => v))];
}

describe("rotation of the sealing key (contract section 9)", () => {
  it("re-seals everything in the sweep, after which the old key is not needed", async () => {
    const [first, second] = [await createApplication(), await createApplication()];
    const badge = await requestBadge(first, "phone", { userId: "alice" });
    expect(badge.status).toBe(201);
    await addSealingKey(1);
    await addSealingKey(2);
    await sweep(testContext().context);
    expect(await versions()).toEqual([2]);

    // A Worker that holds the newer key only, as after the older secret was deleted.
    const { SEALING_KEY_2 } = env;
    const { context } = testContext();
    const { Custody } = await import("../../src/applications/custody.ts");
    const custody = new Custody(new SealingKeys({ SEALING_KEY_2 }));
    const known = await context.registry.findFresh(context.db, first.id, Date.now());
    if (!known) throw new Error("no application");
    const [key] = known.signingKeys;
    expect((await custody.signingKey(first.id, key.kid, key)).extractable).toBe(false);
    expect(await deviceOf(custody, known, "phone")).toBe(await deviceOf(context.custody, known, "phone"));

    // The same phone still has its badge, and another application is not touched by any of it.
    expect(await requestBadge(first, "phone", { userId: "alice" })).toMatchObject({
      status: 200,
      body: { badgeId: badge.body.badgeId },
    });
    expect(await sign(first, "phone", { base64: "aGVsbG8=" })).toMatchObject({ status: 200 });
    expect(await requestBadge(second, "phone", { userId: "alice" })).toMatchObject({ status: 201 });
  });

  it("does nothing while the Worker does not hold the newest key, and nothing twice", async () => {
    await createApplication();
    await addSealingKey(1);
    await addSealingKey(2);
    const { SEALING_KEY_1 } = env;
    expect(await resealSome(new Database(env.DB), new SealingKeys({ SEALING_KEY_1 }))).toBe(0);
    const { context } = testContext();
    expect(await resealSome(context.db, context.sealingKeys)).toBeGreaterThan(0);
    expect(await resealSome(context.db, context.sealingKeys)).toBe(0);
  });

  it("goes on where a killed run stopped: two runs at once do each value once", async () => {
    await createApplication();
    await addSealingKey(1);
    await addSealingKey(2);
    const { context } = testContext();
    await Promise.all([resealSome(context.db, context.sealingKeys), resealSome(context.db, context.sealingKeys)]);
    expect(await versions()).toEqual([2]);
    const known = await context.registry.findFresh(context.db, (await createApplication()).id, Date.now());
    expect(known?.deviceKey.sealingVersion).toBe(1);
  });
});
