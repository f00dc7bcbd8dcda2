import { createHash } from "node:crypto";
import { generateSealingKey } from "../../shared/sealing.ts";
import type { Homes } from "../platform/homes.ts";
import type { WorkerSecrets } from "../platform/worker-secrets.ts";
import { newestVersion, publishNewest, publishNewestEverywhere } from "./newest.ts";
import { readSealingKeys } from "./usage.ts";

/**
 * Creates the next sealing key of a deployed environment. The private half becomes a Worker secret first; then the public
 * half goes into D1, in home 1 and then in the others. The private half is never on disk or on a command line.
 *
 * If two administrators do this at once, the one whose public half reaches home 1 first has created the key. Nothing is
 * ever sealed to the other key, so its secret is deleted. A crash before that leaves an unused secret, which is deleted
 * when its version is removed. A crash between two homes leaves one of them with the previous key, until this,
 * `sealing-key reseal` or `init` runs again.
 *
 * @returns the newest version, and the secret that this run has created
 */
export async function makeDeployedSealingKey(homes: Homes, secrets: WorkerSecrets): Promise<MadeSealingKey> {
  const version = (await newestVersion(homes)) + 1;
  const { publicKey, privateKey } = await generateSealingKey();
  const name = sealingSecretName(version, publicKey);
  await secrets.put(name, privateKey);
  // Not if another run published this version or a later one first.
  const isOurs = await publishNewest(homes.first.database, { version, publicKey, createdAt: Date.now() });
  if (!isOurs) await secrets.delete(name);
  await publishNewestEverywhere(homes);
  if (!isOurs) return { version: await newestVersion(homes), isOurs };
  return { version, isOurs, secret: { name, privateKey } };
}

/** The newest version, with its secret if this run has created it. */
export type MadeSealingKey =
  | { version: number; isOurs: false }
  | { version: number; isOurs: true; secret: { name: string; privateKey: string } };

/** 64 bits in hexadecimal, enough to distinguish keys of one version. */
const FINGERPRINT_DIGITS = 16;

/** @param publicKey SPKI DER, base64; its SHA-256 is the fingerprint */
function sealingSecretName(version: number, publicKey: string): string {
  const fingerprint = createHash("sha256").update(Buffer.from(publicKey, "base64")).digest("hex");
  return `SEALING_KEY_${version}_${fingerprint.slice(0, FINGERPRINT_DIGITS)}`;
}

/** Whether a secret holds a key of this version. Local names have no fingerprint. */
const isSealingSecret = (name: string, version: number): boolean =>
  name === `SEALING_KEY_${version}` || name.startsWith(`SEALING_KEY_${version}_`);

/**
 * Names of secrets that the Worker lacks.
 *
 * @returns `newest`: of the newest sealing key, null if it has it or there is no key; `older`: of keys that sealed values still need
 */
export async function missingSecrets(
  homes: Homes,
  secrets: WorkerSecrets,
): Promise<{ newest: string | null; older: string[] }> {
  const [{ keys, publicKeyOf }, names] = await Promise.all([readSealingKeys(homes), secrets.list()]);
  const missing = keys
    .filter(({ newest, values }) => newest || values > 0)
    .filter(({ version }) => !names.includes(`SEALING_KEY_${version}`))
    .map(({ version, newest }) => ({ newest, name: sealingSecretName(version, publicKeyOf(version)) }))
    .filter(({ name }) => !names.includes(name));
  return {
    newest: missing.find(({ newest }) => newest)?.name ?? null,
    older: missing.filter(({ newest }) => !newest).map(({ name }) => name),
  };
}

/** Deletes every secret of a version that is no longer in D1. @returns how many there were */
export async function deleteSealingSecrets(secrets: WorkerSecrets, version: number): Promise<number> {
  const names = (await secrets.list()).filter((name) => isSealingSecret(name, version));
  for (const name of names) await secrets.delete(name);
  return names.length;
}
