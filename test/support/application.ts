import { env } from "cloudflare:workers";
import { drizzle } from "drizzle-orm/d1";
import { makeRootKey, makeSecret, makeSigningKey, type Sealer } from "../../src/shared/credentials.ts";
import { homeOf } from "../../src/shared/homes.ts";
import { type ApplicationId, newApplicationId } from "../../src/shared/identifiers.ts";
import { INITIAL_HEAD } from "../../src/shared/initial-head.ts";
import { application, applicationHead, applicationSecret, signingKey } from "../../src/shared/schema.ts";
import { importSealingPublicKey, seal } from "../../src/shared/sealing.ts";
import { boundHome, testHome } from "./home.ts";

export interface TestApplication {
  id: ApplicationId;
  secret: string;
  firstNumber: number;
  lastNumber: number;
}

let nextFirstNumber = 1_000_000_000;

/** Seals to the first sealing key of the test run. */
export async function testSealer(): Promise<Sealer> {
  const [publicKey] = env.TEST_SEALING_PUBLIC_KEYS;
  if (publicKey === undefined) throw new Error("the test run has no sealing key");
  const key = await importSealingPublicKey(publicKey);
  return { version: 1, seal: (label, plaintext) => seal(key, label, plaintext) };
}

/**
 * Makes an application the way the administration script does, with a number range of its own.
 *
 * @param options `home`: this file's unless given
 */
export async function createApplication(
  options: { size?: number; home?: number } & Partial<Omit<typeof application.$inferInsert, "id">> = {},
): Promise<TestApplication> {
  const { size = 10_000, home = testHome(), ...columns } = options;
  const sealer = await testSealer();
  const id = newApplicationId(home);
  const firstNumber = columns.firstNumber ?? nextFirstNumber;
  const lastNumber = columns.lastNumber ?? firstNumber + size - 1;
  nextFirstNumber = Math.max(nextFirstNumber, lastNumber + 1);
  const createdAt = Date.now();
  const { row, secret } = await makeSecret(sealer, id);
  const orm = drizzle(boundHome(home).d1);
  await orm.batch([
    orm.insert(application).values({
      id,
      name: "Test",
      sealedRootKey: await makeRootKey(sealer, id),
      sealingVersion: sealer.version,
      createdAt,
      ...columns,
      firstNumber,
      lastNumber,
    }),
    orm.insert(applicationSecret).values({ ...row, applicationId: id, role: "current", createdAt }),
    orm.insert(applicationHead).values({ ...INITIAL_HEAD, applicationId: id }),
    orm.insert(signingKey).values({ ...(await makeSigningKey(sealer, id)), applicationId: id, createdAt }),
  ]);
  return { id, secret, firstNumber, lastNumber };
}

/** What `secret add` does; a promotion makes the former secret the previous one. @returns the secret */
export async function addSecret({ id }: TestApplication, role: "added" | "previous"): Promise<string> {
  const { row, secret } = await makeSecret(await testSealer(), id);
  const values = { ...row, applicationId: id, role, createdAt: Date.now() };
  await drizzle(boundHome(homeOf(id)).d1)
    .insert(applicationSecret)
    .values(values);
  return secret;
}
