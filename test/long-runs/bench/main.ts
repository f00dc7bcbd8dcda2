import { writeFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { Command, Option } from "commander";
import { note, runCommand, say } from "../command-line.ts";
import { OPERATIONS } from "./operations.ts";
import { measureOwnCost, measureVerifiedLogin, RUNS, reportOwnCost } from "./own-cost.ts";
import { LEGEND } from "./rounds.ts";
import { withSides } from "./sides.ts";
import { FULL, measureThroughput, QUICK, reportThroughput } from "./throughput.ts";

const DESCRIPTION = `Measures the service beside the floor, a bare Worker of Hono and Drizzle that makes
the same platform calls; the floor once more; and a peer. docs/performance.md says
what they are, how to read the figures, and what --json writes.`;

const { quick, only, ownCost, json } = new Command("npm run bench --")
  .description(DESCRIPTION)
  .option("--quick", "fewer and shorter rounds: about two minutes")
  .option(
    "--own-cost",
    "measure the CPU time of the Worker's own code, platform calls memoised, three times: about eight minutes",
  )
  .option("--json <file>", "write the figures and every single measurement to a file")
  .addOption(new Option("--only <name>", "one operation of all").choices(OPERATIONS.map(({ name }) => name)))
  .parse()
  .opts<{ quick?: true; only?: string; ownCost?: true; json?: string }>();

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
    tell({ ...reportOwnCost(runs), runs });
  } else {
    await withSides(["service", "floor", "twin", "peer"], { consumes: true }, async (sides) => {
      const plan = quick ? QUICK : FULL;
      const measurements = await measureThroughput(sides, plan, only);
      tell({ plan, ...reportThroughput(measurements), measurements });
    });
  }
});

/** On the terminal, and in a file if one is wanted: with when and on what it was measured. */
function tell({ text, ...figures }: { text: string; [figure: string]: unknown }): void {
  say(`\n${text}\n\n${LEGEND}`);
  if (json === undefined) return;
  const machine = { cpu: cpus()[0]?.model ?? "unknown", threads: availableParallelism(), node: process.version };
  writeFileSync(json, `${JSON.stringify({ measuredAt: new Date().toISOString(), machine, ...figures }, null, 2)}\n`);
  note(`wrote ${json}`);
}
