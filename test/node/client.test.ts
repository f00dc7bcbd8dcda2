import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

it("the client bundles nothing but itself and shared code: everything else that it imports is a type", () => {
  const folder = new URL("../../src/client/", import.meta.url);
  const sources = readdirSync(folder).filter((name) => name.endsWith(".ts"));
  const imports = sources.flatMap((name) => [
    ...readFileSync(new URL(name, folder), "utf8").matchAll(/^(?:import|export)(?! type\b)[^;]*? from "(.*)"/gm),
  ]);
  expect(imports.length).toBeGreaterThan(0);
  for (const [, specifier] of imports) expect(specifier).toMatch(/^(\.|\.\.\/shared)\/[a-z0-9-]+\.ts$/);
});
