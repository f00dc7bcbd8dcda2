import { describe, expect, it } from "vitest";
import { runChaos } from "../chaos/run.ts";

const SEED = 20_261_120;

describe("a service that is killed (contract sections 1, 5 and 8)", () => {
  it("keeps every number it answered, and one event a badge, with SIGKILL under traffic", async () => {
    const said: string[] = [];
    const options = { kills: 2, seed: SEED, clients: 4, maxLifeMilliseconds: 1500, drains: false };
    const result = await runChaos({ ...options, say: (line) => said.push(line) });
    expect(result.badges, `seed ${SEED}: ${said.join("; ")}`).toBeGreaterThan(10);
    expect(result.listed).toBeGreaterThanOrEqual(result.badges);
    expect(result.events).toBe(result.listed);
  }, 180_000);
});
