import { describe, expect, it } from "vitest";
import { runChaos } from "../long-runs/chaos/run.ts";
import { byEffort } from "../support/effort.ts";

/** start.test.ts kills the service once in every run of the suite. */
describe.skipIf(byEffort(true, false))("a service that is killed (contract sections 1, 5, 8 and 17)", () => {
  it("after SIGKILL under traffic, both homes have every number that was returned and one event per badge, and no number is in both", async () => {
    expect(await runChaos(10, 20_261_128, () => {})).toHaveLength(2);
  }, 600_000);
});
