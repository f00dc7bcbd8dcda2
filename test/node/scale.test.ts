import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BYTES, measureBytes } from "../long-runs/scale/bytes.ts";
import { DEFAULTS, zipf } from "../long-runs/scale/load.ts";
import { model } from "../long-runs/scale/model.ts";
import { pack } from "../long-runs/scale/pack.ts";
import { MAX_USE } from "../long-runs/scale/platform.ts";
import { report } from "../long-runs/scale/report.ts";
import { allocateOverShards } from "../long-runs/scale/shards.ts";

const PROJECT = join(import.meta.dirname, "../..");
const RANGE = { first: 1000, last: 1999 };

describe("the page about scale says what the model computes", () => {
  it("has the model's output for its defaults, word for word", () => {
    const page = readFileSync(join(PROJECT, "docs/scale.md"), "utf8");
    const blocks = [...page.matchAll(/^```text\n([\s\S]*?)\n```$/gm)].map(([, block]) => block);
    expect(blocks).toEqual([report(DEFAULTS)]);
  });

  it("counts with bytes that a real SQLite needs, within a few percent on few rows", () => {
    const measured = measureBytes(1000);
    for (const kind of ["badge", "event", "invitation", "lease"] as const) {
      expect(Math.abs(measured[kind] / BYTES[kind] - 1), kind).toBeLessThan(0.06);
    }
  });
});

describe("the model", () => {
  it("gives every device an application, and the second largest half of the largest", () => {
    const [first = 0, second = 0, ...others] = zipf({ ...DEFAULTS, devices: 1000, applications: 10 });
    expect(first + second + others.reduce((all, devices) => all + devices, 0)).toBeCloseTo(1000);
    expect(second).toBeCloseTo(first / 2);
  });

  it("plans so that nothing is fuller than it may be, however uneven the applications are", () => {
    for (const skew of [0, 0.5, 1, 2]) {
      for (const newShare of [0.05, 1]) {
        const { plan } = model({ ...DEFAULTS, applications: 200, skew, newShare });
        expect(plan.fullest).toBeLessThanOrEqual(MAX_USE + 1e-9);
      }
    }
  });

  it("needs one D1 for what one holds", () => {
    const { plan, all } = model({ ...DEFAULTS, devices: 500_000, applications: 20 });
    expect(all.uses.every(({ used }) => used < MAX_USE)).toBe(true);
    expect(plan).toMatchObject({ d1: 1, objects: 20, queues: 1, split: 0 });
  });

  it("packs pieces into bins that hold them", () => {
    const pieces = [
      [0.5, 0.25],
      [0.5, 0.25],
      [0.5, 0.25],
      [0.25, 0.75],
    ];
    expect(pack(pieces)).toEqual([
      [0.75, 1],
      [1, 0.5],
    ]);
  });
});

describe("shards over disjoint sub-ranges (contract section 1)", () => {
  it("give no number twice, none outside the range, and the same one to who asks again", () => {
    for (const shards of [1, 2, 7, 17]) {
      const { issued, different, refused, changed, outOfRange } = allocateOverShards(RANGE, shards, 400, shards);
      expect({ different, changed, outOfRange }).toEqual({ different: issued, changed: 0, outOfRange: 0 });
      expect(issued + refused).toBe(400);
    }
  });

  it("are full one by one, before the range is: a shard cannot lend", () => {
    const { issued, refused } = allocateOverShards(RANGE, 10, 1000, 1);
    expect(refused).toBeGreaterThan(0);
    expect(issued + refused).toBe(1000);
  });
});

describe("npm run scale", () => {
  it("takes other numbers", () => {
    const parameters = ["--disable-warning=ExperimentalWarning", "test/long-runs/scale/main.ts", "--devices", "5000"];
    expect(execFileSync(process.execPath, parameters, { cwd: PROJECT, encoding: "utf8" })).toBe(
      `${report({ ...DEFAULTS, devices: 5000 })}\n`,
    );
  });
});
