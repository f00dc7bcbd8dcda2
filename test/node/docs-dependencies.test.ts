import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as z from "zod";

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

const versions = z.record(z.string(), z.string());
const packageSchema = z.object({ dependencies: versions, devDependencies: versions });

/** First cells of the tables in the section on dependencies. */
const tabled = (): string[] => {
  const [, section = ""] = read(".github/CONTRIBUTING.md").split("\n## Dependencies\n");
  const [ofSection = ""] = section.split("\n## ");
  const cells = [...ofSection.matchAll(/^\| (`[^|]+`) \|/gm)].map(([, cell = ""]) => cell);
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name));
};

describe(".github/CONTRIBUTING.md", () => {
  it("gives a reason for each dependency of package.json, once, and for no other package", () => {
    const { dependencies, devDependencies } = packageSchema.parse(JSON.parse(read("package.json")));
    expect(tabled().toSorted()).toEqual(Object.keys({ ...dependencies, ...devDependencies }).toSorted());
  });
});
