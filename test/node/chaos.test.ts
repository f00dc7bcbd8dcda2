import { describe, expect, it } from "vitest";
import { runChaos } from "../long-runs/chaos/run.ts";
import { byEffort } from "../support/effort.ts";

const SEED = 20_261_128;
const TRIES = 3;

/** start.test.ts kills the service once in every run of the suite. */
describe.skipIf(byEffort(true, false))("a service that is killed (contract sections 1, 5, 8 and 17)", () => {
  it("after SIGKILL under traffic, both homes have every number that was returned and one event per badge, and no number is in both", async () => {
    const kills = 10;
    const run = async (seed: number) => {
      const said: string[] = [];
      const result = await runChaos(kills, seed, 2, (line) => said.push(line));
      return { ...result, what: `seed ${seed}: ${said.join("; ")}` };
    };
    let result = await run(SEED);
    // On a busy machine every call that was under way may end before the kill takes effect.
    const hasLost = () => result.homes.every(({ counts }) => counts.lost > 0);
    for (let more = 1; more < TRIES && !hasLost(); more++) result = await run(SEED + more);
    const { what } = result;
    // A run in which a kill met nothing that was answered, or nothing under way, would prove nothing.
    expect(result.badgesAtKills, what).toHaveLength(kills);
    expect(Math.min(...result.badgesAtKills), what).toBeGreaterThan(0);
    expect(hasLost(), what).toBe(true);
    expect(result.homes).toHaveLength(2);
    for (const { badges, listed, events } of result.homes) {
      expect(badges, what).toBeGreaterThan(10);
      expect(listed.size, what).toBeGreaterThanOrEqual(badges);
      expect(events, what).toBe(listed.size);
    }
  }, 600_000);
});
