import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { killTree } from "./support/process-tree.ts";
import { freePort } from "./support/service.ts";

const PROJECT = new URL("../../", import.meta.url).pathname;

/** A copy of the project whose packages can be taken away. */
const copy = mkdtempSync(join(tmpdir(), "badge-copy-"));
const packages = join(copy, "node_modules");

function makeCopy(): void {
  for (const name of ["src", "migrations", "dist"]) cpSync(join(PROJECT, name), join(copy, name), { recursive: true });
  for (const name of ["wrangler.toml", "package.json"]) copyFileSync(join(PROJECT, name), join(copy, name));
  mkdirSync(packages);
  const names = readdirSync(join(PROJECT, "node_modules")).filter((name) => !name.startsWith(".cache"));
  for (const name of names) symlinkSync(join(PROJECT, "node_modules", name), join(packages, name));
  // npm writes this one anew.
  rmSync(join(packages, ".package-lock.json"), { force: true });
  copyFileSync(join(PROJECT, "package.json"), join(packages, ".package-lock.json"));
}

beforeAll(makeCopy);

let child: ChildProcess | undefined;

afterAll(() => {
  if (child?.exitCode === null && child.pid !== undefined) killTree(child.pid);
  rmSync(copy, { recursive: true, force: true });
});

/** Runs one of the programs of the copy. */
function run(name: string, words: readonly string[]): { process: ChildProcess; output: () => string } {
  const env = { ...process.env, BADGE_STATE_DIR: join(copy, "state"), NO_COLOR: "1" };
  const started = spawn(process.execPath, [join(copy, "src/dev", name), ...words], { cwd: copy, env });
  let output = "";
  for (const stream of [started.stdout, started.stderr]) stream.on("data", (part) => (output += part));
  return { process: started, output: () => output };
}

describe("the files of /docs (contract section 11)", () => {
  it("npm start builds the files of /docs first, or says in one line why not", async () => {
    renameSync(join(copy, "dist"), join(copy, "away"));
    writeFileSync(join(copy, "dist"), "a file");
    const { process: made, output } = run("docs-assets.ts", []);
    await once(made, "close");
    expect(made.exitCode).toBe(1);
    expect(output()).toMatch(/^Cannot write to [^\n]*dist\/assets\/docs: [^\n]* \(ENOTDIR\)\n$/);
    rmSync(join(copy, "dist"));
    renameSync(join(copy, "away"), join(copy, "dist"));
  });
});

describe("npm start while npm replaces the packages (contract section 10)", () => {
  it("npm start exits with 1 and one line while npm replaces packages, without errors about missing modules", async () => {
    const { process: start, output } = run("start.ts", ["--port", String(await freePort())]);
    child = start;
    const ended = once(start, "close");
    while (!output().includes("Create your own applications") && start.exitCode === null) await wait(50);
    const before = output();
    expect(before).toContain("is ready");
    // As `npm ci` does.
    for (const name of readdirSync(packages)) rmSync(join(packages, name), { recursive: true });
    await ended;
    expect(start.exitCode).toBe(1);
    const lines = output()
      .slice(before.length)
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("{"));
    expect(lines).toEqual([
      "The packages in node_modules are being replaced: start again with npm start after that. The data is kept.",
    ]);
  }, 120_000);
});
