import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { byEffort } from "../support/effort.ts";

const SEEDS = byEffort(4, 2000);
/** With seed 50 among them: every fiftieth is run twice, and must have the same history. */
const FIRST = byEffort(47, 1);

/** Faults of catching up that are put into the service, which one of these seeds must notice. One shows that the short test can fail. */
const PLANTED_IN_SERVICE = byEffort(
  ["forgets-that-a-range-grew"],
  [
    "abandons-without-an-empty-entry",
    "forgets-that-a-range-grew",
    "forgets-signing-keys",
    "notices-no-restoration",
    "ignores-that-D1-is-ahead",
  ],
);
const PLANTED_SEEDS = byEffort(["--first", "213", "--seeds", "1"], ["--first", "1", "--seeds", "500"]);

/** Of the model of the core's writer. */
const MODEL_SEEDS = byEffort(30, 10_000);
/** Rules without which the model fails within few seeds. */
const PLANTED = [
  { rule: "releases-first", seeds: 6 },
  { rule: "unknown-is-no-refusal", seeds: 7 },
  { rule: "no-abandoning-after-restart", seeds: 2 },
];

const PROJECT = join(import.meta.dirname, "../..");

/** `npm run simulate`, or `npm run model`. The output names the seed that failed, the promise that was broken, and the last steps. */
function run(main: string, ...words: string[]): Promise<{ code: number | null; output: string }> {
  const parameters = ["--disable-warning=ExperimentalWarning", `test/long-runs/simulation/${main}`, ...words];
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
      const { code, output } = await run("main.ts", "--first", String(FIRST), "--seeds", String(SEEDS));
      expect(code, output).toBe(0);
    },
    byEffort(180_000, 1_800_000),
  );

  it.each(PLANTED_IN_SERVICE)(
    "are found broken when the service %s (contract section 21)",
    async (fault) => {
      const { output } = await run("main.ts", "--plant", fault, "--trace", "0", ...PLANTED_SEEDS);
      expect(output).toMatch(/Seed \d+ broke a promise/);
    },
    byEffort(180_000, 600_000),
  );
});

/** With few calls the slowest hundredth is one call: a seed in which the service passes and each fault is seen. */
const ISOLATION = byEffort(["--isolation", "4", "--seed", "12"], ["--isolation", "30"]);

describe("an application beside one that is attacked", () => {
  it("is at most 1.3 times as slow as alone, at the 99th percentile of each operation", async () => {
    const { code, output } = await run("main.ts", ...ISOLATION);
    expect(code, output).toBe(0);
  }, 120_000);

  it.runIf(byEffort(false, true)).each(["blocks-without-pauses", "counts-in-one-chunk"])(
    "is found slower when the attacked one %s",
    async (fault) => {
      const { output } = await run("main.ts", ...ISOLATION, "--plant", fault);
      expect(output).toContain("times as slow as alone");
    },
    120_000,
  );
});

describe("the model of one writer and its journal (contract section 21)", () => {
  it(
    `keeps its promises for ${MODEL_SEEDS} seeds of lost responses and restorations`,
    async () => {
      const { code, output } = await run("model/main.ts", "--seeds", String(MODEL_SEEDS));
      expect(code, output).toBe(0);
    },
    byEffort(120_000, 1_800_000),
  );

  it.each(PLANTED)(
    "breaks a promise without the rule $rule",
    async ({ rule, seeds }) => {
      const { output } = await run("model/main.ts", "--without", rule, "--seeds", String(seeds));
      expect(output).toMatch(new RegExp(`${rule} +[1-9]`));
    },
    byEffort(120_000, 120_000),
  );
});
