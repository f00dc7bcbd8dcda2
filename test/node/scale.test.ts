import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BYTES, measureBytes } from "../long-runs/scale/bytes.ts";
import { floodReport, LARGEST, measureLargest } from "../long-runs/scale/flood.ts";
import { limitsOf, month, type Parameters, USUAL, whole } from "../long-runs/scale/model.ts";

const PROJECT = join(import.meta.dirname, "../..");

const read = (file: string): string => readFileSync(join(PROJECT, file), "utf8");

it("docs/scale.md has the exact output of npm run scale, and docs/operations.md its largest flood (contract section 7)", () => {
  const blocks = [...read("docs/scale.md").matchAll(/^```text\n([\s\S]*?)^```$/gm)].map(([, block]) => block);
  const command = ["--disable-warning=ExperimentalWarning", "test/long-runs/scale/main.ts"];
  expect(blocks).toEqual([execFileSync(process.execPath, command, { cwd: PROJECT, encoding: "utf8" })]);
  expect(read("docs/operations.md")).toContain(`\`\`\`text\n${floodReport()}\n\`\`\`\n`);
});

it("npm run scale calculates with the bytes that a real SQLite needs, within a few per cent on few rows", () => {
  const known = { badges: BYTES, largest: LARGEST };
  const measured = { badges: measureBytes(1000), largest: measureLargest(1000) };
  for (const size of ["badges", "largest"] as const) {
    const ratios = Object.entries(known[size]).map(([kind, bytes]) => Reflect.get(measured[size], kind) / bytes);
    for (const ratio of ratios) expect(Math.abs(ratio - 1), ratios.join()).toBeLessThan(0.06);
  }
});

describe("the model", () => {
  const parameters = { ...USUAL, devices: 1000, applications: 10 };
  const limit = (name: keyof ReturnType<typeof limitsOf>, more: Partial<Parameters>) =>
    limitsOf({ ...parameters, ...more })[name];

  it("the model adds up by hand: 1,000 reads a second at the primary, 5 a device on a day, 30 % of them in one hour, twice at once", () => {
    const rare = { newShare: 0, invitationsPerMonth: 0, nearShare: 0 };
    // A page of 100 for each 100 devices and day is a hundredth of a read more.
    expect(limit("primary time", rare)).toBeCloseTo(1000 / ((5.01 * 0.3 * 2) / 3600), 0);
    // The primary gets a tenth of these reads. Each of the three replicas gets a third of the rest.
    expect(limit("primary time", { ...rare, nearShare: 0.9 })).toBeCloseTo(1000 / ((0.51 * 0.3 * 2) / 3600), 0);
    expect(limit("replica time", { ...rare, nearShare: 0.9 })).toBeCloseTo((3 * 1000) / ((5 * 0.3 * 2) / 3600), 0);
  });

  it("the model bills one log line per LOG_SAMPLE requests, and one per delivery", () => {
    const dollars = (sample: number) => {
      const requests = 22 * 5.01 + 0.05 + 2 * 0.02;
      const gigabytes = 1e8 * (requests / sample + 0.05 + 0.02) * 4.8e-6;
      return (gigabytes - 50) * 0.25 + ((gigabytes * 7) / 30 - 12) * 0.1;
    };
    const told = month({ ...parameters, devices: 1e8, applications: 1000 });
    expect(told.get("  logs: sampled, all lines")).toBe(whole(dollars(50), dollars(1)));
  });
});
