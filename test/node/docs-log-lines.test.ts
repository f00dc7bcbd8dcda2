import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));

const LOGGED = /\blog\(\s*"(?<level>info|warn|error)",\s*\{\s*event: "(?<event>[\w-]+)"/g;

/** A row of the table: event and level. */
const LISTED = /^\| `(?<event>[\w-]+)` \| (?<level>info|warn|error) \|/gm;

const linesOf = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(({ groups }) => `${groups?.level} ${groups?.event}`);

describe("docs/operations.md", () => {
  it("lists every line that the Worker logs, with its level, and no other", () => {
    const worker = join(PROJECT, "src/worker");
    const sources = readdirSync(worker, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
    const texts = sources.map((path) => readFileSync(join(worker, path), "utf8"));
    const logged = new Set(texts.flatMap((text) => linesOf(text, LOGGED)));
    // Every call of `log` is found by the pattern: none is left for a reader of the document to miss.
    const calls = texts.flatMap((text) => text.match(/(?<!function |\.)\blog\(/g) ?? []).length;
    expect(texts.flatMap((text) => linesOf(text, LOGGED))).toHaveLength(calls);
    const listed = linesOf(readFileSync(join(PROJECT, "docs/operations.md"), "utf8"), LISTED);
    expect(listed.toSorted()).toEqual([...logged].toSorted());
  });
});
