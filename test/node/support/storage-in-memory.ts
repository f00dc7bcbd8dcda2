import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { PROJECT } from "../../../src/admin/platform/paths.ts";

/** Files in it are in memory (Linux). */
const IN_MEMORY = "/dev/shm";

/** More than all tests together store. A container often has less, and other systems have none. */
const NEEDED_BYTES = 2 ** 30;

/** What the programs that tests start need not compile again, wrangler's 15 MB above all. */
const COMPILED = join(PROJECT, "node_modules/.cache/node");

/**
 * Once per run: what the tests store is in memory where there is room for it, and gone when they have ended. Databases
 * and objects wait for the disk with every write (fsync), and no test needs its data to survive a loss of power.
 */
export default function storeInMemory(): void {
  process.env.NODE_COMPILE_CACHE ??= COMPILED;
  if (freeBytes() < NEEDED_BYTES) return;
  const folder = mkdtempSync(join(IN_MEMORY, "badge-tests-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  process.env.TMPDIR = folder;
}

function freeBytes(): number {
  try {
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
