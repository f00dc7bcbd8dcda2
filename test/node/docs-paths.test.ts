import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));

/** The contract and the interface came from elsewhere, and name what stands there. */
const GIVEN = ["docs/contract.md", "docs/interface.md"];

const pathsIn = (folder: string, recursive = false): string[] =>
  readdirSync(join(PROJECT, folder), { recursive, encoding: "utf8" }).map((name) => join(folder, name));

const DOCUMENTS = [
  ...[".", ".github", "docs", "docs/decisions"]
    .flatMap((folder) => pathsIn(folder))
    .filter((path) => path.endsWith(".md") && !GIVEN.includes(path)),
  ...["src", "test"].flatMap((folder) => pathsIn(folder, true)).filter((path) => path.endsWith("/README.md")),
];

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

describe("the documents", () => {
  it.each(DOCUMENTS)("%s names only source files that exist", (document) => {
    const named = [...read(document).matchAll(/`([\w/.-]+\/[\w.-]+\.(?:tsx?|css|py|go))`/g)].map(
      ([, path = ""]) => path,
    );
    const missing = named.filter((path) => !rootsOf(document).some((root) => existsSync(join(PROJECT, root, path))));
    expect(missing).toEqual([]);
  });

  it.each(DOCUMENTS)("%s links only to files and headings that exist", (document) => {
    const links = [...read(document).matchAll(/\]\((?!https?:|\.\.\/\.\.\/actions)([^)\s]+)\)/g)].map(
      ([, to = ""]) => to,
    );
    const broken = links.filter((link) => {
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? document : join(dirname(document), path);
      if (!existsSync(join(PROJECT, target))) return true;
      return anchor !== undefined && !anchorsOf(read(target)).includes(anchor);
    });
    expect(broken).toEqual([]);
  });
});
