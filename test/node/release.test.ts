import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { PROJECT } from "../../src/admin/platform/paths.ts";

it("workflows use other people's actions only at a fixed commit, because a tag can be moved", () => {
  const folder = join(PROJECT, ".github/workflows");
  const used = readdirSync(folder).flatMap((name) => [
    ...readFileSync(join(folder, name), "utf8").matchAll(/uses: (?!\.\/)(\S+)/g),
  ]);
  expect(used.length).toBeGreaterThan(3);
  for (const [, action] of used) expect(action).toMatch(/@[0-9a-f]{40}$/);
});
