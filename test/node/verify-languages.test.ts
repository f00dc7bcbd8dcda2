import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { PROJECT } from "../../src/admin/platform/paths.ts";
import { LANGUAGES, runVectors } from "../../src/dev/verify-in-language.ts";

const VECTORS = join(PROJECT, "src/verify");

/** Python's runs whenever it is there, and CI installs it; Go's takes a while to compile, so `npm run test:full` runs it. */
describe.each(LANGUAGES)("the verifier in $name", (language) => {
  const isWanted = language.name === "python" || inject("effort") === "full";
  const isInstalled = isWanted && language.command(VECTORS) !== null;
  if (isWanted && !isInstalled) console.warn(`SKIPPED: ${language.missing}`);

  it.runIf(isInstalled)("decides every published vector as expected", () => {
    expect(runVectors(language, VECTORS)).toMatchObject({ status: 0 });
  });
});
