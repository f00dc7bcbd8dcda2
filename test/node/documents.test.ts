import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));

/** The contract and the interface came from elsewhere, and name what stands there. */
const GIVEN = ["docs/contract.md", "docs/interface.md"];

const DOCUMENTS = [".", ".github", "docs", "src", "test"]
  .flatMap((folder) =>
    readdirSync(join(PROJECT, folder), { recursive: folder !== ".", encoding: "utf8" }).map((name) =>
      join(folder, name),
    ),
  )
  .filter((path) => path.endsWith(".md") && !GIVEN.includes(path));

/** Where the paths of prose begin: it leaves out what its reader knows. The README of a folder also leaves out the folder. */
const rootsOf = (document: string): string[] => ["", "src", "src/worker", dirname(document)];

const read = (path: string): string => readFileSync(join(PROJECT, path), "utf8");

/** As GitHub makes them from headings. */
const anchorsOf = (text: string): string[] =>
  [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );

describe.each(DOCUMENTS)("%s", (document) => {
  const text = read(document);

  it("a document names only source files that exist", () => {
    const named = [...text.matchAll(/`([\w/.-]+\/[\w.-]+\.(?:tsx?|css|py|go))`/g)].map(([, path = ""]) => path);
    const missing = named.filter((path) => !rootsOf(document).some((root) => existsSync(join(PROJECT, root, path))));
    expect(missing).toEqual([]);
  });

  it("a document links only to files and headings that exist", () => {
    const links = [...text.matchAll(/\]\((?!https?:|\.\.\/\.\.\/actions)([^)\s]+)\)/g)].map(([, to = ""]) => to);
    const broken = links.filter((link) => {
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? document : join(dirname(document), path);
      if (!existsSync(join(PROJECT, target))) return true;
      return anchor !== undefined && !anchorsOf(read(target)).includes(anchor);
    });
    expect(broken).toEqual([]);
  });
});

describe("docs/conformance.md", () => {
  const [, ...sections] = read("docs/conformance.md").split(/^## /m);

  /** A requirement, and where in `test` which words of a test prove it: in the file of the section's heading, or in its own. */
  function proofsIn(section: string): { requirement: string; path: string; words: string }[] {
    const [, own = ""] = /^.*: `([\w/-]+)`\n/.exec(section) ?? [];
    const rows = section.matchAll(/^\| ([^|]+) \| (?:`([\w/-]+)` )?([^|]+) \|$/gm);
    return [...rows]
      .map(([, requirement = "", path = own, words = ""]) => ({ requirement, path, words }))
      .filter(({ requirement }) => requirement !== "requirement" && requirement !== "---");
  }

  it.each(sections.flatMap(proofsIn))("names a test in $path for: $requirement", ({ path, words }) => {
    const file = `test/${path}.test.ts`;
    expect(existsSync(PROJECT + file), "no such file").toBe(true);
    expect(read(file)).toContain(words);
  });

  it("docs/conformance.md has five standards, each with a test", () => {
    expect(sections.map((section) => proofsIn(section).length > 0)).toEqual([true, true, true, true, true]);
  });
});

it("workflows use other people's actions only at a fixed commit, because a tag can be moved", () => {
  const workflows = readdirSync(join(PROJECT, ".github/workflows")).map((name) => read(`.github/workflows/${name}`));
  const used = workflows.flatMap((text) => [...text.matchAll(/uses: (?!\.\/)(\S+)/g)]);
  expect(used.length).toBeGreaterThan(3);
  for (const [, action] of used) expect(action).toMatch(/@[0-9a-f]{40}$/);
});
