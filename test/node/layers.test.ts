import { describe, expect, it } from "vitest";
import { findCircle, importsIn, isAllowed, layerOf, MAY_IMPORT, readImports } from "./support/layers.ts";

const imports = readImports();
const used = new Set(imports.filter(isAllowed).map(({ from, to }) => `${layerOf(from)} → ${layerOf(to)}`));
/** A file of a folder, or the file itself. */
const fileOf = (name: string): string => (name.endsWith(".ts") ? name : `${name}/planted.ts`);

describe("src", () => {
  it("src has no import that the table does not allow, and no cycle", () => {
    expect(imports.filter((each) => !isAllowed(each))).toEqual([]);
    expect(findCircle(imports)).toBeUndefined();
    expect(imports.length).toBeGreaterThan(1000);
  });

  it("src uses every edge of the table, so that none is allowed without need", () => {
    const listed = Object.entries(MAY_IMPORT).flatMap(([from, all]) =>
      all.map((to) => `${from} → ${layerOf(fileOf(to))}`),
    );
    expect(listed.filter((edge) => !used.has(edge))).toEqual([]);
  });
});

describe("the guard of layers", () => {
  const names = Object.keys(MAY_IMPORT);

  it.each(names)("the guard refuses a planted import from %s into each folder that it may not import", (from) => {
    for (const to of names.filter((name) => name !== from && !MAY_IMPORT[from]?.includes(name))) {
      const [planted] = importsIn(
        fileOf(from),
        `import { x } from "${"../".repeat(fileOf(from).split("/").length - 1) || "./"}${fileOf(to)}";`,
      );
      expect(planted && isAllowed(planted), `${from} → ${to}`).toBe(false);
    }
  });

  it("the guard finds dynamic imports, and imports of types", () => {
    const found = importsIn(
      "worker/http/a.ts",
      'import type { A } from "./b.ts";\nconst c = () => import("../c.ts");\n',
    );
    expect(found).toEqual([
      { from: "worker/http/a.ts", to: "worker/http/b.ts", isType: true },
      { from: "worker/http/a.ts", to: "worker/c.ts", isType: false },
    ]);
  });

  it("the guard finds an import cycle of three files, and ignores cycles of types", () => {
    const circle = (isType: boolean) => [
      { from: "a.ts", to: "b.ts", isType: false },
      { from: "b.ts", to: "c.ts", isType: false },
      { from: "c.ts", to: "a.ts", isType },
    ];
    expect(findCircle(circle(false))).toEqual(["a.ts", "b.ts", "c.ts", "a.ts"]);
    expect(findCircle(circle(true))).toBeUndefined();
  });
});
