import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * `npm run check:packages` checks that the packages are ready to publish. It downloads the checkers from the npm registry:
 * they are large and used only here, so the project does not depend on them.
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
    // Not `publish --dry-run`, which fails once this version is published: a release run can be repeated.
    run("npm", ["pack", "--dry-run"], folder);
    run("npx", ["--yes", PUBLINT, "--strict"], folder);
    run("npx", ["--yes", ARE_THE_TYPES_WRONG, "--pack", ".", "--profile", "esm-only"], folder);
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  rmSync(packages, { recursive: true, force: true });
}
