import { env } from "cloudflare:workers";
import { drizzle } from "drizzle-orm/d1";
import { describe, expect, it } from "vitest";
import { application, sealingKey } from "../../src/shared/schema.ts";
import { resealChunk } from "../../src/worker/keys/resealing.ts";
import { SealingKeys } from "../../src/worker/keys/sealing-keys.ts";
import { UnsealedKeys } from "../../src/worker/keys/unsealed-keys.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { createApplication } from "../support/application.ts";
import { testContext } from "../support/context.ts";
import { homeDatabase } from "../support/home.ts";

/** The tests' sealing keys 1 and 2. Here the second one plays another key of version 1. */
const { SEALING_KEY_1: right, SEALING_KEY_2: other } = env;
const orm = drizzle(homeDatabase());

/** Makes an application, which is sealed to version 1, and opens its root key with these Worker secrets. */
async function opensWith(secrets: Record<string, string>): Promise<boolean> {
  const { id } = await createApplication();
  const { context } = testContext();
  const known = await context.applicationCache.reload(context.db, id, Date.now());
  if (!known) throw new Error("no application");
  const unsealedKeys = new UnsealedKeys(new SealingKeys(secrets));
  // Twice: what the first call learned must not spoil the second.
  const open = () => unsealedKeys.signingKey(id, known.signingKeys[0].kid, known.signingKeys[0]);
  return unsealedKeys
    .rootKey(id, known.rootKey)
    .then(open)
    .then(
      () => true,
      () => false,
    );
}

describe("the Worker finds the secret of a sealing key (contract section 9)", () => {
  it.each([
    ["of release 1.0, without a fingerprint", { SEALING_KEY_1: right }],
    ["by version and fingerprint", { SEALING_KEY_1_00112233aabbccdd: right }],
    ["behind one that lost the race for its version", { SEALING_KEY_1_00aa: other, SEALING_KEY_1_00bb: right }],
    ["before one that lost the race for its version", { SEALING_KEY_1_00bb: right, SEALING_KEY_1_00cc: other }],
    ["beside one that is no key at all", { SEALING_KEY_1: "aGVsbG8=", SEALING_KEY_1_00bb: right }],
  ])("the Worker finds a secret %s", async (_how, secrets: Record<string, string>) => {
    expect(await opensWith(secrets)).toBe(true);
  });

  it.each([
    ["of another version", { SEALING_KEY_2: right, SEALING_KEY_10: right, SEALING_KEY_11_00aa: right }],
    ["of another key", { SEALING_KEY_1: other }],
    ["of another name", { SEALING_KEY_1_: right, XSEALING_KEY_1: right, SEALING_KEY_1_00AAx: right }],
  ])("the Worker does not take a secret %s", async (_what, secrets: Record<string, string>) => {
    expect(await opensWith(secrets)).toBe(false);
  });
});

describe("re-sealing seals only to the key that D1 names and the Worker holds (contract section 9)", () => {
  const versions = async () =>
    (await orm.select({ version: application.sealingVersion }).from(application)).map((row) => row.version);

  it("re-sealing with two secrets of the newest version seals to the key that D1 names", async () => {
    await createApplication();
    const [first = "", second = ""] = env.TEST_SEALING_PUBLIC_KEYS;
    await orm
      .insert(sealingKey)
      .values([{ version: 1, publicKey: first, createdAt: 1 }])
      .onConflictDoNothing();
    await orm.insert(sealingKey).values([{ version: 2, publicKey: second, createdAt: 2 }]);
    const db = new Database(homeDatabase());
    // `right` is a key of version 2 here that lost the race; the one D1 names has not arrived yet.
    const early = new SealingKeys({ SEALING_KEY_1: right, SEALING_KEY_2_00aa: right });
    expect((await resealChunk(db, early)).resealed).toBe(0);
    expect(new Set(await versions())).toEqual(new Set([1]));
    const both = new SealingKeys({ SEALING_KEY_1: right, SEALING_KEY_2_00aa: right, SEALING_KEY_2_00bb: other });
    expect((await resealChunk(db, both)).resealed).toBeGreaterThan(0);
    expect(new Set(await versions())).toEqual(new Set([2]));
    // The loser's secret is deleted, and nothing needs it.
    const { context } = testContext();
    const [row] = await orm.select().from(application);
    const known = row && (await context.applicationCache.reload(context.db, row.id, Date.now()));
    if (!known) throw new Error("no application");
    const unsealedKeys = new UnsealedKeys(new SealingKeys({ SEALING_KEY_2_00bb: other }));
    expect((await unsealedKeys.rootKey(known.id, known.rootKey)).extractable).toBe(false);
  });
});
