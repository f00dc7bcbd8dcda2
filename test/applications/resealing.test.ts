import { env } from "cloudflare:workers";
import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { beforeEach, describe, expect, it } from "vitest";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import { application, applicationSecret, sealingKey, signingKey } from "../../src/shared/schema.ts";
import { hashUdid } from "../../src/worker/applications/derived-ids.ts";
import { resealChunk } from "../../src/worker/keys/resealing.ts";
import { SealingKeys } from "../../src/worker/keys/sealing-keys.ts";
import { UnsealedKeys } from "../../src/worker/keys/unsealed-keys.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { createApplication } from "../support/application.ts";
import { testContext } from "../support/context.ts";
import { aroundD1 } from "../support/d1.ts";
import { isAbout } from "../support/faults.ts";
import { homeDatabase } from "../support/home.ts";
import { requestBadge, sign } from "../support/http.ts";
import { log } from "../support/log.ts";
import { sweep } from "../support/sweep.ts";

const orm = drizzle(homeDatabase());
/** Every test has the sealed values that it makes, and no others. */
beforeEach(async () => {
  await orm.batch([
    orm.delete(applicationSecret),
    orm.delete(signingKey),
    orm.delete(application),
    orm.delete(sealingKey),
  ]);
});

/** What `sealing-key rotate` does for D1. */
async function rotateSealingKey(): Promise<void> {
  for (const [place, publicKey] of env.TEST_SEALING_PUBLIC_KEYS.slice(0, 2).entries()) {
    await orm
      .insert(sealingKey)
      .values({ version: place + 1, publicKey, createdAt: 1 })
      .onConflictDoNothing();
  }
}

const secretsOf = (applicationId: ApplicationId) =>
  orm.select().from(applicationSecret).where(eq(applicationSecret.applicationId, applicationId));

/** IDs of the values that need this key. */
async function rowsAtVersion(version: number): Promise<string[]> {
  const applications = await orm.select().from(application).where(eq(application.sealingVersion, version));
  const secrets = await orm.select().from(applicationSecret).where(eq(applicationSecret.sealingVersion, version));
  const keys = await orm.select().from(signingKey).where(eq(signingKey.sealingVersion, version));
  return [...applications.map(({ id }) => id), ...secrets.map(({ id }) => id), ...keys.map(({ kid }) => kid)];
}

describe("rotation of the sealing key (contract section 9)", () => {
  it("re-seals everything in the sweep, after which the old key is not needed", async () => {
    const [first] = [await createApplication(), await createApplication()];
    const badge = await requestBadge(first, "phone", { userId: "alice" });
    expect(badge.status).toBe(201);
    await rotateSealingKey();
    await sweep();
    // Each has a root key, a secret and a signing key.
    expect(await rowsAtVersion(2)).toHaveLength(6);

    // A Worker that holds the newer key only, as after the older secret was deleted.
    const { SEALING_KEY_2 } = env;
    const { context } = testContext();
    const unsealedKeys = new UnsealedKeys(new SealingKeys({ SEALING_KEY_2 }));
    const known = await context.applicationCache.reload(context.db, first.id, Date.now());
    if (!known) throw new Error("no application");
    const [key] = known.signingKeys;
    expect((await unsealedKeys.signingKey(first.id, key.kid, key)).extractable).toBe(false);
    expect(await hashUdid(unsealedKeys, known, "phone")).toBe(await hashUdid(context.unsealedKeys, known, "phone"));

    expect((await requestBadge(first, "phone", { userId: "alice" })).body).toEqual({ badgeId: badge.body.badgeId });
    expect(await sign(first, "phone", { base64: "aGVsbG8=" })).toMatchObject({ status: 200 });
    expect(await resealChunk(context.db, context.sealingKeys)).toEqual({ resealed: 0, unreadable: [], next: null });
  });

  it("re-sealing with two secrets of the newest version seals to the key that D1 names, once the Worker holds that", async () => {
    await createApplication();
    await rotateSealingKey();
    const { SEALING_KEY_1, SEALING_KEY_2 } = env;
    const { db } = testContext().context;
    // Key 1 plays a key of version 2 that lost the race; the one that D1 names has not arrived yet.
    const early = { SEALING_KEY_1, SEALING_KEY_2_00aa: SEALING_KEY_1 };
    expect(await resealChunk(db, new SealingKeys(early))).toEqual({ resealed: 0, unreadable: [], next: null });
    expect(await rowsAtVersion(1)).toHaveLength(3);
    await resealChunk(db, new SealingKeys({ ...early, SEALING_KEY_2_00bb: SEALING_KEY_2 }));
    expect(await rowsAtVersion(2)).toHaveLength(3);
  });

  it.each<[string, () => Promise<unknown>, number]>([
    ["seals nothing to a key which has been removed", () => orm.delete(sealingKey).where(eq(sealingKey.version, 2)), 1],
    [
      // As by another sweep that knows a still newer key, or by an administrator.
      "leaves alone what was replaced",
      async () => {
        await orm.update(application).set({ sealedRootKey: "newer", sealingVersion: 3 });
        await orm.update(applicationSecret).set({ sealed: "newer", sealingVersion: 3 });
        await orm.update(signingKey).set({ sealed: "newer", sealingVersion: 3 });
      },
      3,
    ],
  ])("re-sealing %s meanwhile", async (_, change, version) => {
    await createApplication();
    await rotateSealingKey();
    const d1 = aroundD1(homeDatabase(), async (statements, send) => {
      if (isAbout(statements, "UPDATE")) await change();
      return send();
    });
    expect(await resealChunk(new Database(d1), testContext().context.sealingKeys)).toMatchObject({ resealed: 0 });
    expect(await rowsAtVersion(version)).toHaveLength(3);
  });
});

describe("a value that cannot be opened (contract section 9)", () => {
  it("a value that cannot be opened stops no other: it is logged by its IDs, tried again by the next sweep, and still needs its key", async () => {
    const [broken, sound] = [await createApplication(), await createApplication()];
    const [secret] = await secretsOf(broken.id);
    const [ofSound] = await secretsOf(sound.id);
    const [key] = await orm.select().from(signingKey).where(eq(signingKey.applicationId, broken.id));
    if (!secret || !ofSound || !key) throw new Error("an application has a secret and a key");
    // One is a copy of another row's value, one is no base64 at all.
    const setSecret = (sealed: string) =>
      orm.update(applicationSecret).set({ sealed }).where(eq(applicationSecret.id, secret.id));
    await setSecret(ofSound.sealed);
    await orm.update(signingKey).set({ sealed: "***" }).where(eq(signingKey.id, key.id));
    await rotateSealingKey();
    await sweep();

    const old = (await rowsAtVersion(1)).toSorted();
    expect(old).toEqual([key.kid, secret.id].toSorted());
    const ids = { application: broken.id, sealingVersion: 1, error: expect.any(String) };
    const logged = log.lines().filter(({ event }) => event === "value-not-resealed");
    expect(logged).toEqual([
      { level: "error", event: "value-not-resealed", purpose: "application-secret", id: secret.id, ...ids },
      { level: "error", event: "value-not-resealed", purpose: "signing-key", id: key.kid, ...ids },
    ]);
    expect(JSON.stringify(log.lines())).not.toContain(ofSound.sealed.slice(0, 20));
    expect(log.lines()).toContainEqual(expect.objectContaining({ event: "sweep", valuesUnreadable: 2 }));

    await setSecret(secret.sealed);
    await sweep();
    expect(await rowsAtVersion(1)).toEqual([key.kid]);
  });

  it("a value that cannot be opened keeps no value behind it waiting, however many there are, and fills no log", async () => {
    const { id: applicationId } = await createApplication();
    const junk = { applicationId, publicKey: "", sealed: "AAAA", sealingVersion: 1, createdAt: 0 };
    // IDs of their own: D1 would give them those that the next application may make.
    for (let id = 1; id <= 120; id++) await orm.insert(signingKey).values({ ...junk, id, kid: `junk-${id}` });
    const { id } = await createApplication();
    await rotateSealingKey();
    await sweep();
    const [last] = await orm.select().from(signingKey).where(eq(signingKey.applicationId, id));
    expect(last?.sealingVersion).toBe(2);
    expect(await rowsAtVersion(1)).toHaveLength(120);
    expect(log.lines().filter(({ event }) => event === "value-not-resealed")).toHaveLength(20);
    const counts = { valuesUnreadable: 120, valuesResealed: 6 };
    expect(log.lines()).toContainEqual(expect.objectContaining({ event: "sweep", ...counts }));
  });
});
