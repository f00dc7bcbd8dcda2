import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));

/** A requirement, and where in `test` which words of a test prove it: in the file of the section's heading, or in its own. */
function proofsIn(section: string): { requirement: string; path: string; words: string }[] {
  const [, own = ""] = /^.*: `([\w/-]+)`\n/.exec(section) ?? [];
  const rows = section.matchAll(/^\| ([^|]+) \| (?:`([\w/-]+)` )?([^|]+) \|$/gm);
  return [...rows]
    .map(([, requirement = "", path = own, words = ""]) => ({ requirement, path, words }))
    .filter(({ requirement }) => requirement !== "requirement" && requirement !== "---");
}

const [, ...sections] = readFileSync(`${PROJECT}docs/conformance.md`, "utf8").split(/^## /m);

it.each(sections.flatMap(proofsIn))(
  "$path has the test that docs/conformance.md names for: $requirement",
  ({ path, words }) => {
    const file = [".test.ts", ".ts"].map((ending) => `${PROJECT}test/${path}${ending}`).find(existsSync);
    expect(file, "no such file").toBeDefined();
    expect(readFileSync(file ?? "", "utf8")).toContain(words);
  },
);

it("docs/conformance.md has five standards, each with a test", () => {
  expect(sections.map((section) => proofsIn(section).length > 0)).toEqual([true, true, true, true, true]);
});
