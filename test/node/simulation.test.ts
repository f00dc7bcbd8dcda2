import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { byEffort } from "../support/effort.ts";

const SEEDS = byEffort(20, 2000);
/** With seed 50 among them: every fiftieth is run twice, and must have the same history. */
const FIRST = byEffort(31, 1);

const PROJECT = join(import.meta.dirname, "../..");

/** `npm run simulate`. Its output names the seed that failed, the promise that was broken, and the last steps. */
function simulate(...words: string[]): Promise<{ code: number | null; output: string }> {
  const parameters = ["--disable-warning=ExperimentalWarning", "test/long-runs/simulation/main.ts", ...words];
  return new Promise((resolve) => {
    const child = execFile(process.execPath, parameters, { cwd: PROJECT }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, output: stdout + stderr }),
    );
  });
}

describe("the core, whatever fails and in whatever order (contract sections 1, 4, 5, 8 and 9)", () => {
  it(
    `keeps its promises for ${SEEDS} seeds`,
    async () => {
      const { code, output } = await simulate("--first", String(FIRST), "--seeds", String(SEEDS));
      expect(code, output).toBe(0);
    },
    byEffort(180_000, 600_000),
  );
});
