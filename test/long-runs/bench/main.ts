import { Command, Option } from "commander";
import { note, runCommand, say } from "../command-line.ts";
import { OPERATIONS } from "./operations.ts";
import { measureOwnCost, measureVerifiedLogin, RUNS, reportOwnCost } from "./own-cost.ts";
import { LEGEND } from "./rounds.ts";
import { withSides } from "./sides.ts";
import { FULL, measureThroughput, QUICK, reportThroughput } from "./throughput.ts";

const DESCRIPTION = `Measures the service beside the floor, a bare Worker of Hono and Drizzle that makes
the same platform calls; the floor once more; and a peer. docs/performance.md says
what they are and how to read the figures.`;

const { quick, only, ownCost } = new Command("npm run bench --")
  .description(DESCRIPTION)
  .option("--quick", "fewer and shorter rounds: about two minutes")
  .option(
    "--own-cost",
    "measure the CPU time of the Worker's own code, platform calls memoised, three times: about eight minutes",
  )
  .addOption(new Option("--only <name>", "one operation of all").choices(OPERATIONS.map(({ name }) => name)))
  .parse()
  .opts<{ quick?: true; only?: string; ownCost?: true }>();

await runCommand(async () => {
  if (ownCost) {
    const runs: Awaited<ReturnType<typeof measureOwnCost>>[] = [];
    for (let run = 1; run <= RUNS; run++) {
      note(`run ${run} of ${RUNS}`);
      const measurements: (typeof runs)[number] = [];
      for (const measure of [measureOwnCost, measureVerifiedLogin]) {
        await withSides(["service", "floor", "twin"], { isDriven: true }, async (sides) => {
          measurements.push(...(await measure(sides)));
        });
      }
      runs.push(measurements);
    }
    tell(reportOwnCost(runs));
  } else {
    await withSides(["service", "floor", "twin", "peer"], { consumes: true }, async (sides) => {
      tell(reportThroughput(await measureThroughput(sides, quick ? QUICK : FULL, only)));
    });
  }
});

function tell(text: string): void {
  say(`\n${text}\n\n${LEGEND}`);
}
