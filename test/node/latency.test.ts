import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { latencyTable } from "../long-runs/scale/latency.ts";

describe("docs/performance.md", () => {
  it("has the table of latencies as the model calculates it from counted round trips", () => {
    const page = readFileSync(new URL("../../docs/performance.md", import.meta.url), "utf8");
    expect(page).toContain(`\n${latencyTable()}\n`);
  });
});
