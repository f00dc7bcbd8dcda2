import { createPrivateKey, createPublicKey } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { generateSealingKey } from "../../shared/sealing.ts";
import { UserError } from "../command-line/errors.ts";
import { withLock } from "./file-lock.ts";
import { formatPath, type LocalState } from "./paths.ts";

const LINE = /^SEALING_KEY_([1-9][0-9]*)=([A-Za-z0-9+/]+=*)$/;

/** The local sealing keys by version: private halves, PKCS #8 as base64. @throws UserError when one is damaged */
export function readLocalKeys({ sealingKeys }: LocalState): Map<number, string> {
  const keys = new Map<number, string>();
  if (!existsSync(sealingKeys)) return keys;
  for (const line of readFileSync(sealingKeys, "utf8").split("\n")) {
    const [, version, key] = LINE.exec(line) ?? [];
    if (version === undefined || key === undefined) continue;
    assertPrivateKey(key, `SEALING_KEY_${version} in ${formatPath(sealingKeys)}`);
    keys.set(Number(version), key);
  }
  return keys;
}

function assertPrivateKey(privateKey: string, what: string): void {
  try {
    publicHalf(privateKey);
  } catch (cause) {
    throw new UserError(`${what} is damaged: restore your copy of that file, or start over with npm run reset.`, {
      cause,
    });
  }
}

/** The private half of a version, from the file. If the file has none, a new one is generated and written to it. */
export async function ensureLocalKey(state: LocalState, version: number): Promise<string> {
  const existing = readLocalKeys(state).get(version);
  if (existing !== undefined) return existing;
  const { privateKey } = await generateSealingKey();
  return withLock(state.keyLock, () => {
    const keys = readLocalKeys(state);
    const first = keys.get(version);
    if (first !== undefined) return first;
    writeLocalKeys(state, keys.set(version, privateKey));
    return privateKey;
  });
}

/** Removes a version from the file. @returns whether the file had it */
export function removeLocalKey(state: LocalState, version: number): boolean {
  return withLock(state.keyLock, () => {
    const keys = readLocalKeys(state);
    const existed = keys.delete(version);
    if (existed) writeLocalKeys(state, keys);
    return existed;
  });
}

/** The public half that goes into D1: SPKI DER as base64. */
export function publicHalf(privateKey: string): string {
  const key = createPrivateKey({ key: Buffer.from(privateKey, "base64"), format: "der", type: "pkcs8" });
  return createPublicKey(key).export({ format: "der", type: "spki" }).toString("base64");
}

/** Replaces the file by a rename, so that a reader sees either the old file or the new one. */
function writeLocalKeys({ sealingKeys }: LocalState, keys: ReadonlyMap<number, string>): void {
  const lines = [...keys].sort(([a], [b]) => a - b).map(([version, key]) => `SEALING_KEY_${version}=${key}`);
  mkdirSync(dirname(sealingKeys), { recursive: true });
  const draft = `${sealingKeys}.${process.pid}`;
  try {
    writeFileSync(draft, `${lines.join("\n")}\n`, { mode: 0o600, flush: true });
    chmodSync(draft, 0o600);
    renameSync(draft, sealingKeys);
  } finally {
    rmSync(draft, { force: true });
  }
}
