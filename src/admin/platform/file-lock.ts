import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** SQLite's code for a lock that another process holds. */
const SQLITE_BUSY = 5;

/**
 * Takes a lock between processes: an open transaction on an empty SQLite file. The operating system releases it however
 * its holder ends, so there are no stale locks.
 *
 * @returns a function that releases the lock; null when another process still holds it after the wait
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

/** Whether another process holds a lock. */
export function isLocked(path: string): boolean {
  const release = takeLock(path, 0);
  release?.();
  return release === null;
}

/** Runs a short piece of work while holding a lock. */
export function withLock<T>(path: string, work: () => T): T {
  const release = takeLock(path, 10_000);
  if (release === null) throw new Error(`another process has held ${path} for ten seconds`);
  try {
    return work();
  } finally {
    release();
  }
}
