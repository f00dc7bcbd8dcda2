import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { BYTES, measureBytes } from "../long-runs/scale/bytes.ts";
import { duration, floodReport, LARGEST, measureLargest } from "../long-runs/scale/flood.ts";
import { billLines, limitsOf, month, type Parameters, whole, zipf } from "../long-runs/scale/model.ts";

const PROJECT = join(import.meta.dirname, "../..");

/** What `npm run scale` prints. */
function printed(...parameters: string[]): string {
  const command = ["--disable-warning=ExperimentalWarning", "test/long-runs/scale/main.ts", ...parameters];
  return execFileSync(process.execPath, command, { cwd: PROJECT, encoding: "utf8" });
}

/** With the default parameters. */
let output = "";

beforeAll(() => {
  output = printed();
});

describe("docs/scale.md", () => {
  it("docs/scale.md has the exact output of npm run scale", () => {
    const page = readFileSync(join(PROJECT, "docs/scale.md"), "utf8");
    const blocks = [...page.matchAll(/^```text\n([\s\S]*?)^```$/gm)].map(([, block]) => block);
    expect(blocks).toEqual([output]);
  });

  it("docs/scale.md calculates with the bytes that a real SQLite needs, within a few per cent on few rows", () => {
    const measured = measureBytes(1000);
    for (const kind of ["badge", "event", "invitation", "ownBadge", "entry", "ownInvitation"] as const) {
      expect(Math.abs(measured[kind] / BYTES[kind] - 1), kind).toBeLessThan(0.06);
    }
  });
});

describe("the largest flood (contract section 7)", () => {
  it("docs/operations.md has the largest flood as npm run scale prints it", () => {
    const page = readFileSync(join(PROJECT, "docs/operations.md"), "utf8");
    expect(page).toContain(`\`\`\`text\n${floodReport()}\n\`\`\`\n`);
    expect(output).toContain(floodReport());
  });

  it("the largest flood is calculated with the bytes of the largest badge in a real SQLite: at most 6 KB in D1 and in the allocator", () => {
    const measured = measureLargest(1000);
    for (const kind of ["badge", "event", "ownBadge", "entry"] as const) {
      expect(Math.abs(measured[kind] / LARGEST[kind] - 1), kind).toBeLessThan(0.06);
    }
    expect(Math.max(LARGEST.badge, LARGEST.ownBadge)).toBeLessThan(6000);
  });

  it("the largest flood takes as long as the range lasts at the hourly limit", () => {
    expect([60, 3600, 7199, 7200].map(duration)).toEqual(["1 minutes", "60 minutes", "120 minutes", "2 hours"]);
    expect([2 * 86_400, 41.7 * 86_400, 3 * 365 * 86_400].map(duration)).toEqual(["2 days", "42 days", "3 years"]);
  });
});

describe("the model", () => {
  const parameters: Parameters = {
    devices: 1000,
    applications: 10,
    skew: 1,
    newShare: 0.05,
    loginsPerDay: 1,
    signaturesPerDay: 4,
    invitationsPerMonth: 0.02,
    peakShare: 0.3,
    burst: 2,
    nearShare: 0.9,
    places: 3,
    years: 3,
    logSample: 50,
    fill: 0.7,
  };
  const limit = (name: keyof ReturnType<typeof limitsOf>, more: Partial<Parameters>) =>
    limitsOf({ ...parameters, ...more })[name];

  it("the model gives every device an application, and the second largest half of the largest", () => {
    const [first = 0, second = 0, ...others] = zipf(parameters);
    expect(first + second + others.reduce((all, devices) => all + devices, 0)).toBeCloseTo(1000);
    expect(second).toBeCloseTo(first / 2);
  });

  it("the model adds up by hand: 1,000 reads a second at the primary, 5 a device on a day, 30 % of them in one hour, twice at once", () => {
    const rare = { newShare: 0, invitationsPerMonth: 0, nearShare: 0 };
    // A page of 100 for each 100 devices and day is a hundredth of a read more.
    expect(limit("primary time", rare)).toBeCloseTo(1000 / ((5.01 * 0.3 * 2) / 3600), 0);
    // The primary gets a tenth of these reads. Each of the three replicas gets a third of the rest.
    expect(limit("primary time", { ...rare, nearShare: 0.9 })).toBeCloseTo(1000 / ((0.51 * 0.3 * 2) / 3600), 0);
    expect(limit("replica time", { ...rare, nearShare: 0.9 })).toBeCloseTo((3 * 1000) / ((5 * 0.3 * 2) / 3600), 0);
  });

  it("the model gains nothing from a single replica, and holds fewer devices with every year of storage", () => {
    expect(limit("replica time", { places: 1 })).toBeLessThan(1.01 * limit("primary time", { nearShare: 0 }));
    expect(limit("storage", { years: 5 })).toBeLessThan(limit("storage", { years: 3 }));
  });

  it("the model fills a home to its share of the first limit, and divides an application that no home holds", () => {
    const capacity = whole(0.7 * Math.min(...Object.values(limitsOf(parameters))));
    const tell = (applications: number, devices: number) => {
      const told = month({ ...parameters, applications, devices });
      return ["devices in a home", "homes", "applications to divide"].map((line) => told.get(line));
    };
    expect(tell(1, 10_000_000)).toEqual([capacity, "5", "1 into 5"]);
    expect(tell(1000, 1_000_000)).toEqual([capacity, "1", "0"]);
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

  it("the model has a line for every object, alarm and deletion of a month, and names the largest", () => {
    const lines = billLines({ ...parameters, devices: 1e8, applications: 1000 });
    expect(lines.map(({ dollars }) => dollars)).toEqual(lines.map(({ dollars }) => dollars).toSorted((a, b) => b - a));
    const dollars = new Map(lines.map((line) => [line.name, line.dollars]));
    expect(dollars.get("old events deleted")).toBeCloseTo(1e8 * 0.07 * 1.001e-6);
    expect(dollars.get("alarms set")).toBeGreaterThan(0);
    expect(output).toContain(`Largest: ${lines[0]?.name}.\n`);
  });

  it("the model takes the numbers of devices and applications from its options", () => {
    expect(printed("--devices", "5000", "--skew", "0")).toContain("5,000 devices in 1,000 applications, Zipf 0.");
  });
});
