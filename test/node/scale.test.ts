import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BYTES, measureBytes } from "../long-runs/scale/bytes.ts";
import { zipf } from "../long-runs/scale/model.ts";

const PROJECT = join(import.meta.dirname, "../..");

/** What `npm run scale` prints. */
function printed(...parameters: string[]): string {
  const command = ["--disable-warning=ExperimentalWarning", "test/long-runs/scale/main.ts", ...parameters];
  return execFileSync(process.execPath, command, { cwd: PROJECT, encoding: "utf8" });
}

describe("docs/scale.md", () => {
  it("has the exact output of npm run scale", () => {
    const page = readFileSync(join(PROJECT, "docs/scale.md"), "utf8");
    const blocks = [...page.matchAll(/^```text\n([\s\S]*?)^```$/gm)].map(([, block]) => block);
    expect(blocks).toEqual([printed()]);
  });

  it("calculates with the bytes that a real SQLite needs, within a few per cent on few rows", () => {
    const measured = measureBytes(1000);
    for (const kind of ["badge", "event", "invitation", "lease"] as const) {
      expect(Math.abs(measured[kind] / BYTES[kind] - 1), kind).toBeLessThan(0.06);
    }
  });
});

describe("the model", () => {
  const parameters = {
    devices: 1000,
    applications: 10,
    skew: 1,
    newShare: 0,
    loginsPerDay: 0,
    signaturesPerDay: 0,
    invitationsPerMonth: 0,
    peakShare: 0,
    burst: 0,
  };

  it("gives every device an application, and the second largest half of the largest", () => {
    const [first = 0, second = 0, ...others] = zipf(parameters);
    expect(first + second + others.reduce((all, devices) => all + devices, 0)).toBeCloseTo(1000);
    expect(second).toBeCloseTo(first / 2);
  });

  it("accepts other numbers", () => {
    expect(printed("--devices", "5000", "--skew", "0")).toContain("5,000 devices in 1,000 applications, Zipf 0.");
  });
});
