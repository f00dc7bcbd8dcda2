import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Checks that the packages are ready to publish: `npm run check:packages`. It needs the npm registry: the checkers are large
 * and used for nothing else, so they are no dependencies of the project.
 */

const PUBLINT = "publint@0.3.25";
const ARE_THE_TYPES_WRONG = "@arethetypeswrong/cli@0.18.5";

const packages = mkdtempSync(join(tmpdir(), "badge-packages-"));

function run(program: string, words: readonly string[], cwd: string): void {
  console.log(`\n==> ${program} ${words.join(" ")}`);
  const { status } = spawnSync(program, words, { cwd, stdio: "inherit" });
  if (status !== 0) throw new Error(`${program} ${words.join(" ")} failed`);
}

try {
  run(process.execPath, [fileURLToPath(new URL("build-packages.ts", import.meta.url)), packages], packages);
  for (const name of readdirSync(packages)) {
    const folder = join(packages, name);
    run("npm", ["publish", "--dry-run"], folder);
    run("npx", ["--yes", PUBLINT, "--strict"], folder);
    run("npx", ["--yes", ARE_THE_TYPES_WRONG, "--pack", ".", "--profile", "esm-only"], folder);
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  rmSync(packages, { recursive: true, force: true });
}
