import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { draw, mutantsOf } from "../long-runs/mutation/mutants.ts";
import { isMutated, testsOf, WORKER_TESTS } from "../long-runs/mutation/tests.ts";

const PROJECT = join(import.meta.dirname, "../..");
const filesOf = (folder: string, ending: RegExp): string[] =>
  readdirSync(join(PROJECT, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => ending.test(file))
    .map((file) => `${folder}/${file}`);

it("mutants change one operator, condition, literal, statement or piece of SQL, and nothing that only a person reads", () => {
  const mutated = (text: string): string[] =>
    mutantsOf("file.ts", text).map(
      ({ start, end, replacement }) => text.slice(0, start) + replacement + text.slice(end),
    );
  expect(mutated("if (a < 7) b();")).toEqual([
    "if (true) b();",
    "if (false) b();",
    "if (a <= 7) b();",
    "if (a >= 7) b();",
    "if (a < (8)) b();",
    "if (a < (6)) b();",
    "if (a < 7) ;",
  ]);
  expect(mutated('const a = "SELECT a FROM b WHERE c <= ?1";')).toEqual(['const a = "SELECT a FROM b WHERE c < ?1";']);
  expect(mutated('import a from "b"; throw new Error(e ? "f" : "g"); const h = "opens from its start on";')).toEqual(
    [],
  );
  const limits = mutantsOf("src/shared/limits/request-limits.ts", "export const A = 60; export const B = 1;");
  expect(limits.map(({ replacement }) => replacement)).toEqual(["(600)", "(6)"]);
});

it("every file of src that is mutated has likely tests, which exist", () => {
  const sources = filesOf("src", /\.(tsx?|js)$/);
  expect(sources.filter((file) => isMutated(file) && testsOf(file).length === 0)).toEqual([]);
  const tests = filesOf("test", /\.test\.ts$/);
  const named = new Set([...sources.flatMap(testsOf), ...WORKER_TESTS]);
  expect([...named].filter((part) => !tests.some((file) => file.includes(part)))).toEqual([]);
});

it("a draw of mutants is even over all files, and equal for a seed", () => {
  const mutants = [mutantsOf("long.ts", "a = [1, 2, 3, 4, 5];"), mutantsOf("short.ts", "a = [1];")].flat();
  const drawn = draw(mutants, 4, 1);
  expect(drawn.map(({ file }) => file).toSorted()).toEqual(["long.ts", "long.ts", "short.ts", "short.ts"]);
  expect(draw(mutants, 4, 1)).toEqual(drawn);
  expect(draw(mutants, 4, 2)).not.toEqual(drawn);
});
