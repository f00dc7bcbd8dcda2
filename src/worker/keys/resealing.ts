import { RESEAL_CHUNK_ROWS } from "../../shared/limits/sweep-limits.ts";
import { open, seal } from "../../shared/sealing.ts";
import type { Database } from "../storage/database.ts";
import {
  FROM_THE_START,
  findOldSealed,
  type ReadPositions,
  type Resealed,
  type StoredSealed,
  writeResealed,
} from "../storage/sealed-values.ts";
import type { SealingKeys } from "./sealing-keys.ts";

/** A value that cannot be opened, because its sealing key is missing or the value was altered. */
interface Unreadable {
  value: StoredSealed;
  error: unknown;
}

interface ResealedChunk {
  resealed: number;
  unreadable: Unreadable[];
  /** Start of the next chunk; null at the end. */
  next: ReadPositions | null;
}

/**
 * Re-seals one chunk of values to the newest sealing key. The sweep does it, because only the Worker can open sealed
 * values. An administrator adds the new key and watches the count. A row changes only if it still has the opened value,
 * so the work can be repeated and interrupted. A value that cannot be opened is skipped.
 *
 * @param after `next` of the previous chunk
 */
export async function resealChunk(
  db: Database,
  keys: SealingKeys,
  after: ReadPositions = FROM_THE_START,
): Promise<ResealedChunk> {
  const { newest, values, through } = await findOldSealed(db, after, RESEAL_CHUNK_ROWS);
  const publicKey = newest && (await keys.findPublicKey(newest));
  // A deployment is still in progress if the private half of the newest key is missing.
  if (values.length === 0 || !newest || !publicKey) return { resealed: 0, unreadable: [], next: null };
  const made: Resealed[] = [];
  const unreadable: Unreadable[] = [];
  for (const value of values) {
    try {
      made.push({ value, resealed: await reseal(keys, publicKey, value) });
    } catch (error) {
      unreadable.push({ value, error });
    }
  }
  const resealed = made.length === 0 ? 0 : await writeResealed(db, made, newest.version);
  return { resealed, unreadable, next: through };
}

/** The plaintext exists only in memory, between the two operations. */
async function reseal(keys: SealingKeys, publicKey: CryptoKey, value: StoredSealed): Promise<string> {
  const { purpose, applicationId, id, sealed, sealingVersion } = value;
  const label = { purpose, applicationId, id };
  const plaintext = await keys.open(sealingVersion, (privateKey) => open(privateKey, label, sealed));
  try {
    return await seal(publicKey, label, plaintext);
  } finally {
    plaintext.fill(0);
  }
}
