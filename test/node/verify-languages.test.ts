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

const cases = z.array(z.looseObject({ expected: z.string() }));
const file = z.looseObject({
  cases,
  cards: z.array(z.looseObject({ hex: z.string() })),
  statusListEncodings: z.array(z.looseObject({ lst: z.string(), statuses: z.record(z.string(), z.int()) })),
});
const possessionFile = z.looseObject({ cases });
type Vectors = z.infer<typeof file> & { possession: z.infer<typeof possessionFile> };

const readVectors = (name: string): unknown => JSON.parse(readFileSync(join(VECTORS, name), "utf8"));

/** One or two vectors of each kind, in a folder of their own: to notice a difference, a verifier need not run all. */
function someVectors(change: (vectors: Vectors) => void = () => {}): string {
  const { cases, cards, statusListEncodings, ...rest } = file.parse(readVectors("vectors.json"));
  const phones = possessionFile.parse(readVectors("vectors-possession.json"));
  const vectors = {
    ...rest,
    cases: [first(cases), first(cases.filter(({ expected }) => expected === "revoked"))],
    cards: [first(cards)],
    statusListEncodings: [first(statusListEncodings)],
    possession: {
      ...phones,
      cases: [first(phones.cases), first(phones.cases.filter(({ expected }) => expected === "wrong-role"))],
    },
  };
  change(vectors);
  const { possession, ...others } = vectors;
  writeFileSync(join(folder, "vectors.json"), JSON.stringify(others));
  writeFileSync(join(folder, "vectors-possession.json"), JSON.stringify(possession));
  return folder;
}

function first<T>([element]: readonly T[]): T {
  if (element === undefined) throw new Error("nothing there");
  return element;
}

const CHANGES: Record<string, (vectors: Vectors) => void> = {
  "a case": (vectors) => {
    first(vectors.cases).expected = "expired";
  },
  "a refusal": (vectors) => {
    first(vectors.cases.filter(({ expected }) => expected === "revoked")).expected = "suspended";
  },
  "a phone that holds its key": (vectors) => {
    first(vectors.possession.cases).expected = "bad-response-signature";
  },
  "a phone that does not": ({ possession }) => {
    first(possession.cases.filter(({ expected }) => expected === "wrong-role")).expected = "ok";
  },
  "a card": (vectors) => {
    first(vectors.cards).hex = "0000000";
  },
  "a status list": (vectors) => {
    first(vectors.statusListEncodings).statuses = { 0: 1 };
  },
};

/** Python's runs whenever it is there, and CI installs it; Go's takes a while to compile, so `npm run test:full` runs it. */
describe.each(LANGUAGES)("the verifier in $name", (language) => {
  const isWanted = language.name === "python" || inject("effort") === "full";
  const isInstalled = isWanted && language.command(VECTORS) !== null;
  if (isWanted && !isInstalled) console.warn(`SKIPPED: ${language.missing}`);

  it.runIf(isInstalled)("decides every published vector as expected", () => {
    expect(runVectors(language, VECTORS)).toMatchObject({ status: 0 });
  });

  it.runIf(isInstalled).each(Object.entries(CHANGES))("exits non-zero on a difference in %s", (_, change) => {
    expect(runVectors(language, someVectors(change))?.status).not.toBe(0);
  });

  it.runIf(isInstalled)("exits with zero on the same vectors without a difference", () => {
    expect(runVectors(language, someVectors())?.status).toBe(0);
  });

  it("reports what is missing if the language is not installed, and exits non-zero", () => {
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
  const { scripts } = z
    .object({ scripts: z.record(z.string(), z.string()) })
    .parse(JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8")));
  for (const { name } of LANGUAGES)
    expect(scripts[`verify:${name}`]).toBe(`node src/dev/verify-in-language.ts ${name}`);
});
