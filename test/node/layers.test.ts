import { expect, it } from "vitest";
import { importsIn, isAllowed, layerOf, MAY_IMPORT, readImports } from "./support/layers.ts";

it("src uses every edge of the table of imports, so that none is allowed without need", () => {
  const used = new Set(
    readImports()
      .filter(isAllowed)
      .map(({ from, to }) => `${layerOf(from)} → ${layerOf(to)}`),
  );
  const layerNamed = (name: string) => layerOf(name.endsWith(".ts") ? name : `${name}/file.ts`);
  const listed = Object.entries(MAY_IMPORT).flatMap(([from, all]) => all.map((to) => `${from} → ${layerNamed(to)}`));
  expect(listed.filter((edge) => !used.has(edge))).toEqual([]);
});

it("the guard of layers finds dynamic imports, and imports of types, and refuses what the table does not allow", () => {
  expect(isAllowed({ from: "shared/a.ts", to: "worker/context.ts" })).toBe(false);
  const text = 'import type { A } from "./b.ts";\nconst c = () => import("../c.ts");\n';
  expect(importsIn("worker/http/a.ts", text)).toEqual([
    { from: "worker/http/a.ts", to: "worker/http/b.ts" },
    { from: "worker/http/a.ts", to: "worker/c.ts" },
  ]);
});
