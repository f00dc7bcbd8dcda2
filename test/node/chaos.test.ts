import { describe, expect, it } from "vitest";
import { runChaos } from "../long-runs/chaos/run.ts";
import { byEffort } from "../support/effort.ts";

const SEED = 20_261_128;
const TRIES = 3;

describe("a service that is killed (contract sections 1, 5 and 8)", () => {
  it(
    "keeps every number and state it returned, one event a badge, and an exact copy by the feed, with SIGKILL under traffic",
    async () => {
      const length = byEffort({ kills: 1, drains: false }, { kills: 10, drains: true });
      const run = async (seed: number) => {
        const said: string[] = [];
        const options = { ...length, seed, clients: 4, maxLifeMilliseconds: 1500 };
        const result = await runChaos({ ...options, say: (line) => said.push(line) });
        return { ...result, what: `seed ${seed}: ${said.join("; ")}` };
      };
      let result = await run(SEED);
      // On a busy machine every call that was under way may end before the kill takes effect.
      for (let more = 1; more < TRIES && result.counts.lost === 0; more++) result = await run(SEED + more);
      const { what } = result;
      // A run in which a kill met nothing that was answered, or nothing under way, would prove nothing.
      expect(result.badgesAtKills, what).toHaveLength(length.kills);
      expect(Math.min(...result.badgesAtKills), what).toBeGreaterThan(0);
      expect(result.counts.lost, what).toBeGreaterThan(0);
      expect(result.badges, what).toBeGreaterThan(10);
      // Revoked badges are not listed, but the copy has them.
      expect(result.mirrored).toBeGreaterThanOrEqual(result.badges);
      expect(result.events).toBe(result.mirrored);
      // Some were revoked: they are in the copy and not in the list.
      expect(result.mirrored).toBeGreaterThan(result.listed);
    },
    byEffort(180_000, 600_000),
  );
});
