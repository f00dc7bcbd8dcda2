import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, inject, it } from "vitest";
import * as z from "zod";
import { LANGUAGES, runVectors } from "../../src/dev/verify-in-language.ts";

const PROJECT = new URL("../../", import.meta.url).pathname;
const VECTORS = join(PROJECT, "src/verify");
const folder = mkdtempSync(join(tmpdir(), "verify-languages-"));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const cases = z.array(z.looseObject({ name: z.string(), expected: z.string() }));
const file = z.looseObject({
  cases,
  cards: z.array(z.looseObject({ format: z.string(), badgeNumber: z.string(), hex: z.string() })),
  statusListEncodings: z.array(z.looseObject({ name: z.string(), statuses: z.record(z.string(), z.int()) })),
});
const possessionFile = z.looseObject({ cases });

const readVectors = (name: string): unknown => JSON.parse(readFileSync(join(VECTORS, name), "utf8"));

function first<T>([element]: readonly T[]): T {
  if (element === undefined) throw new Error("nothing there");
  return element;
}

/** Python's runs whenever it is there, and CI installs it; Go's takes a while to compile, so `npm run test:full` runs it. */
describe.each(LANGUAGES)("the verifier in $name", (language) => {
  const isWanted = language.name === "python" || inject("effort") === "full";
  const isInstalled = isWanted && language.command(VECTORS) !== null;
  if (isWanted && !isInstalled) console.warn(`SKIPPED: ${language.missing}`);

  it.runIf(isInstalled)("decides every published vector as expected", () => {
    expect(runVectors(language, VECTORS)).toMatchObject({ status: 0 });
  });

  // One or two vectors of each kind: to notice a difference, a verifier need not run all.
  it.runIf(isInstalled)("exits with zero on some without a difference, else non-zero, naming each difference", () => {
    const { cases, cards, statusListEncodings, ...rest } = file.parse(readVectors("vectors.json"));
    const phones = possessionFile.parse(readVectors("vectors-possession.json"));
    const [good, revoked] = [first(cases), first(cases.filter(({ expected }) => expected === "revoked"))];
    const [holdsItsKey, wrongRole] = [
      first(phones.cases),
      first(phones.cases.filter(({ expected }) => expected === "wrong-role")),
    ];
    const [card, encoding] = [first(cards), first(statusListEncodings)];
    const run = () => {
      const vectors = { ...rest, cases: [good, revoked], cards: [card], statusListEncodings: [encoding] };
      writeFileSync(join(folder, "vectors.json"), JSON.stringify(vectors));
      const possession = { ...phones, cases: [holdsItsKey, wrongRole] };
      writeFileSync(join(folder, "vectors-possession.json"), JSON.stringify(possession));
      return runVectors(language, folder);
    };
    expect(run()?.status).toBe(0);
    good.expected = "expired";
    revoked.expected = "suspended";
    holdsItsKey.expected = "bad-response-signature";
    wrongRole.expected = "ok";
    card.hex = "0000000";
    encoding.statuses = { 0: 1 };
    const { status, output = "" } = run() ?? {};
    expect(status).not.toBe(0);
    for (const { expected, name } of [good, revoked, holdsItsKey, wrongRole]) {
      expect(output).toContain(`${expected}: ${name}`);
    }
    expect(output).toContain(`${card.format} ${card.badgeNumber}`);
    expect(output).toContain(encoding.name);
  });

  it("npm run verify:… reports what is missing if the language is not installed, and exits non-zero", () => {
    const script = join(PROJECT, "src/dev/verify-in-language.ts");
    const nothing = { PATH: folder, HOME: folder, PYTHON_PATH: join(folder, "python") };
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, language.name], {
      env: nothing,
      encoding: "utf8",
    });
    expect({ status, stdout, stderr }).toEqual({ status: 1, stdout: "", stderr: `${language.missing}\n` });
  });
});

it("npm run names a script for each language", () => {
  const packageFile = z.object({ scripts: z.record(z.string(), z.string()) });
  const { scripts } = packageFile.parse(JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8")));
  for (const { name } of LANGUAGES)
    expect(scripts[`verify:${name}`]).toBe(`node src/dev/verify-in-language.ts ${name}`);
});
