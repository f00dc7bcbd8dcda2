import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** SQLite's code for a lock that another process holds. */
const SQLITE_BUSY = 5;

/**
 * Takes a lock between processes, by a transaction on an empty SQLite file: the system gives it back when its holder
 * ends, however it ends, so no stale lock is left to be recognised.
 *
 * @returns what gives the lock back, or null when another process holds it after the wait
 */
export function takeLock(path: string, waitMilliseconds: number): (() => void) | null {
  mkdirSync(dirname(path), { recursive: true });
  const database = new DatabaseSync(path, { timeout: waitMilliseconds });
  try {
    database.exec("BEGIN EXCLUSIVE");
    return () => database.close();
  } catch (error) {
    database.close();
    if (error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY) return null;
    throw error;
  }
}

/** Does a short piece of work that no other process may do at the same time. */
export function withLock<T>(path: string, work: () => T): T {
  const release = takeLock(path, 10_000);
  if (release === null) throw new Error(`another process has held ${path} for ten seconds`);
  try {
    return work();
  } finally {
    release();
  }
}
