import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FAULTS, OF_ISOLATION, PLANTED } from "../long-runs/simulation/planted.ts";
import { byEffort } from "../support/effort.ts";

/** Every fiftieth is run twice, and must have the same history. */
const SEEDS = byEffort(200, 2000);

/** Faults that are put into the service, which one of these seeds must notice. One shows that the short test can fail. */
const PLANTED_IN_SERVICE = byEffort(
  ["replies-before-D1-has-it"],
  PLANTED.filter((fault) => !OF_ISOLATION.includes(fault)),
);
const PLANTED_SEEDS = byEffort(["--first", "1", "--seeds", "1"], ["--first", "1", "--seeds", "1000"]);

const PROJECT = join(import.meta.dirname, "../..");

/** `npm run simulate`. The output names the seed that failed, the promise that was broken, and the last steps. */
function run(...words: string[]): Promise<{ code: number | null; output: string }> {
  const parameters = ["--disable-warning=ExperimentalWarning", `test/long-runs/simulation/main.ts`, ...words];
  return new Promise((resolve) => {
    const child = execFile(process.execPath, parameters, { cwd: PROJECT }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, output: stdout + stderr }),
    );
  });
}

describe("the core, whatever fails and in whatever order (contract sections 1, 4, 5, 8 and 9)", () => {
  it(
    `the core keeps its promises for ${SEEDS} seeds`,
    async () => {
      const { code, output } = await run("--first", "1", "--seeds", String(SEEDS));
      expect(code, output).toBe(0);
    },
    byEffort(800_000, 1_800_000),
  );

  it("the service has the text that each planted fault changes, once", () => {
    const texts = FAULTS.map(({ name, file, from }) => {
      const service = readFileSync(join(PROJECT, "src/worker", file), "utf8");
      return { name, places: service.split(from).length - 1 };
    });
    expect(texts.length).toBeGreaterThan(40);
    expect(texts.filter(({ places }) => places !== 1)).toEqual([]);
  });

  it.each(PLANTED_IN_SERVICE)(
    "the core is found broken when the service %s (contract section 21)",
    async (fault) => {
      const { output } = await run("--plant", fault, "--trace", "0", ...PLANTED_SEEDS);
      expect(output).toMatch(/Seed \d+ broke a promise/);
    },
    byEffort(180_000, 600_000),
  );
});

/** With few calls the slowest hundredth is one call: a seed in which the service passes and each fault is seen. */
const ISOLATION = byEffort(["--isolation", "4", "--seed", "12"], ["--isolation", "20", "--seed", "12"]);

describe("an application beside one that is attacked", () => {
  it("an application beside an attacked one is at most one and a half times as slow as alone, at the 99th percentile", async () => {
    const { code, output } = await run(...ISOLATION);
    expect(code, output).toBe(0);
  }, 120_000);

  it.runIf(byEffort(false, true)).each(OF_ISOLATION)(
    "an application is found slower when the attacked one %s",
    async (fault) => {
      const { output } = await run(...ISOLATION, "--plant", fault);
      expect(output).toContain("times as slow as alone");
    },
    120_000,
  );
});
