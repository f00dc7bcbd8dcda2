import {
  copyFileSync,
  cpSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { killTree } from "./support/process-tree.ts";
import { type RunningProgram, startProgram } from "./support/program.ts";
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

let start: RunningProgram | undefined;

afterAll(() => {
  if (start?.child.exitCode === null) killTree(start.child.pid);
  rmSync(copy, { recursive: true, force: true });
});

/** Runs one of the programs of the copy. */
const run = (name: string, ...words: string[]) =>
  startProgram([process.execPath, join(copy, "src/dev", name), ...words], {
    ...{ cwd: copy, env: { BADGE_STATE_DIR: join(copy, "state"), NO_COLOR: "1" } },
  });

describe("the files of /docs (contract section 11)", () => {
  it("npm start builds the files of /docs first, or says in one line why not", async () => {
    renameSync(join(copy, "dist"), join(copy, "away"));
    writeFileSync(join(copy, "dist"), "a file");
    const { ended, said } = run("docs-assets.ts");
    expect(await ended).toBe(1);
    expect(said.all).toMatch(/^Cannot write to [^\n]*dist\/assets\/docs: [^\n]* \(ENOTDIR\)\n$/);
    rmSync(join(copy, "dist"));
    renameSync(join(copy, "away"), join(copy, "dist"));
  });

  it("a script of /docs that was written half-way does not count as built: it gets its name when it is whole (contract section 11)", async () => {
    const script = join(copy, "dist/assets/docs/scalar.js");
    const old = join(copy, "old.js");
    writeFileSync(script, "old");
    linkSync(script, old);
    expect(await run("docs-assets.ts").ended).toBe(0);
    expect(readFileSync(script, "utf8").slice(0, 24)).toBe("/*! Scalar API reference");
    expect(readFileSync(old, "utf8").length).toBe(3);
  });
});

describe("npm start while npm replaces the packages (contract section 10)", () => {
  it("npm start exits with 1 and one line while npm replaces packages, without errors about missing modules", async () => {
    start = run("start.ts", "--port", String(await freePort()));
    await start.untilSaid(/Create your own applications/);
    const before = start.said.all;
    expect(before).toContain("is ready");
    // As `npm ci` does.
    for (const name of readdirSync(packages)) rmSync(join(packages, name), { recursive: true });
    expect(await start.ended).toBe(1);
    const lines = start.said.all
      .slice(before.length)
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("{"));
    expect(lines).toEqual([
      "The packages in node_modules are being replaced: start again with npm start after that. The data is kept.",
    ]);
  }, 120_000);
});
