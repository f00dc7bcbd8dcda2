import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { draw, mutantsOf } from "../long-runs/mutation/mutants.ts";
import { isInPages, isMutated, isSimulated, testsOf, WORKER_TESTS } from "../long-runs/mutation/tests.ts";

const mutated = (text: string): string[] =>
  mutantsOf("file.ts", text).map(({ start, end, replacement }) => text.slice(0, start) + replacement + text.slice(end));

describe("the mutants of a text", () => {
  it.each<[string, string[]]>([
    ["const a = b < c;", ["const a = b <= c;", "const a = b >= c;"]],
    ["const a = b && !c;", ["const a = b || !c;", "const a = b && c;"]],
    ["const a: number = 7;", ["const a: number = (8);", "const a: number = (6);"]],
    ["const a = true;", ["const a = false;"]],
    ['const a = { kind: "b" };', ['const a = { kind: "" };']],
    ["if (a) b();", ["if (true) b();", "if (false) b();", "if (a) ;"]],
    ["const a = Math.min(b, c);", ["const a = Math.max(b, c);"]],
  ])("%s", (text, expected) => {
    expect(mutated(text)).toEqual(expected);
  });

  it("mutants do not change what only the compiler or a person reads", () => {
    expect(mutated('import a from "b"; type C = "d" | 1; throw new Error(e ? "f" : "g");')).toEqual([]);
    expect(mutated('const a = "opens from its start on"; const b = `not before its start: {c}`;')).toEqual([]);
  });

  it("mutants of the files of limits are ten times as large or as small", () => {
    const text = "export const A = 60; export const B = 1;";
    const mutants = mutantsOf("src/shared/limits/request-limits.ts", text).map(({ replacement }) => replacement);
    expect(mutants).toEqual(["(600)", "(6)"]);
  });

  it("mutants of a query change its conditions, order and joints", () => {
    const sql = "SELECT a FROM b WHERE c <= ?1 AND d IS NULL ORDER BY a LIMIT 1";
    const queries = mutated(`const a = "${sql}";`).map((text) => text.slice(11, -2));
    expect(queries.toSorted()).toEqual([
      "SELECT a FROM b WHERE c < ?1 AND d IS NULL ORDER BY a LIMIT 1",
      "SELECT a FROM b WHERE c <= ?1 AND d IS NOT NULL ORDER BY a LIMIT 1",
      "SELECT a FROM b WHERE c <= ?1 AND d IS NULL  LIMIT 1",
      "SELECT a FROM b WHERE c <= ?1 OR d IS NULL ORDER BY a LIMIT 1",
    ]);
  });
});

describe("the files that mutants are made of", () => {
  const project = join(import.meta.dirname, "../..");
  const sources = readdirSync(join(project, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.(tsx?|js)$/.test(file))
    .map((file) => `src/${file}`);

  it("mutants are made of all files of src, each with tests that may notice, except few", () => {
    expect(sources.filter((file) => isMutated(file) && testsOf(file).length === 0)).toEqual([]);
    const console = sources.filter((file) => file.startsWith("src/console/") && file.endsWith(".tsx"));
    expect(console.length).toBeGreaterThan(10);
    const text = readFileSync(join(project, "src/console/sign-in.tsx"), "utf8");
    expect(mutantsOf("src/console/sign-in.tsx", text).length).toBeGreaterThan(5);
    expect(sources.filter((file) => !isMutated(file)).length).toBeLessThan(sources.length / 5);
  });

  it("the tests that may notice a mutant exist", () => {
    const tests = readdirSync(join(project, "test"), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".test.ts"))
      .map((file) => `test/${file}`);
    const named = new Set([...sources.flatMap(testsOf), ...WORKER_TESTS]);
    expect(named.size).toBeGreaterThan(30);
    expect([...named].filter((part) => !tests.some((file) => file.includes(part)))).toEqual([]);
  });

  it("files that the browser's tests see are built into the pages", () => {
    expect(sources.filter(isInPages)).toContain("src/console/idle.ts");
    const others = sources.filter((file) => !isInPages(file) && !file.startsWith("src/dev/"));
    expect(others.filter((file) => testsOf(file).some((test) => /node\/(console|docs\.)/.test(test)))).toEqual([]);
  });

  it("mutants of files that run in the simulation are tried there", () => {
    const simulated = sources.filter(isSimulated);
    expect(simulated).toContain("src/worker/allocator/decide-group.ts");
    expect(simulated).toContain("src/worker/scheduling/sweep.ts");
    expect(simulated).not.toContain("src/worker/http/app.ts");
  });
});

describe("a draw of mutants", () => {
  const mutants = ["long.ts", "short.ts"].flatMap((file) =>
    mutantsOf(file, file === "long.ts" ? "a = [1, 2, 3, 4, 5];" : "a = [1];"),
  );

  it("a draw of mutants is even over all files, and equal for a seed", () => {
    const drawn = draw(mutants, 4, 1);
    expect(drawn.map(({ file }) => file).toSorted()).toEqual(["long.ts", "long.ts", "short.ts", "short.ts"]);
    expect(draw(mutants, 4, 1)).toEqual(drawn);
    expect(draw(mutants, 4, 2)).not.toEqual(drawn);
  });

  it("a draw smaller than the number of files takes files from all over", () => {
    const files = Array.from({ length: 100 }, (_, index) => mutantsOf(`${index}.ts`, "a = 1;")).flat();
    const drawn = draw(files, 20, 1).map(({ file }) => Number.parseInt(file, 10));
    expect(Math.min(...drawn)).toBeLessThan(30);
    expect(Math.max(...drawn)).toBeGreaterThan(70);
  });

  it("a draw of mutants is everything if there are not more", () => {
    expect(draw(mutants, 1000, 1)).toHaveLength(mutants.length);
  });
});
