import { writeFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { Command, Option } from "commander";
import { note, runCommand, say } from "../command-line.ts";
import { callForever, measureOwnCost, measureVerifiedLogin, OWN_COST_OPERATIONS, reportOwnCost } from "./own-cost.ts";
import { LEGEND } from "./rounds.ts";
import { withSides } from "./sides.ts";
import { FULL, measureThroughput, QUICK, reportThroughput } from "./throughput.ts";

const DESCRIPTION = `Measures the service beside the floor, the smallest hand-written Worker that makes
the same platform calls; the floor once more; and a peer. docs/performance.md says
what they are, how to read the figures, and what --json writes.`;

const { quick, ownCost, json, profile } = new Command("npm run bench --")
  .description(DESCRIPTION)
  .option("--quick", "fewer and shorter rounds: about two minutes")
  .option("--own-cost", "measure the CPU time of the Worker's own code, platform calls memoised: about two minutes")
  .option("--json <file>", "write the figures and every single measurement to a file")
  .addOption(
    new Option("--profile <name>", "call the service so until Ctrl-C, and print where a profiler may connect").choices(
      OWN_COST_OPERATIONS.map(({ name }) => name),
    ),
  )
  .parse()
  .opts<{ quick?: true; ownCost?: true; json?: string; profile?: string }>();

await runCommand(async () => {
  if (profile !== undefined) {
    await withSides(["service"], { isDriven: true, inspects: true }, async (sides) => {
      for (const side of sides) note(`Chrome: chrome://inspect, Configure, ${(await side.inspectorUrl()).host}`);
      await callForever(sides, profile);
    });
  } else if (ownCost) {
    const measurements: Awaited<ReturnType<typeof measureOwnCost>> = [];
    let isCpuTime = true;
    for (const measure of [measureOwnCost, measureVerifiedLogin]) {
      await withSides(["service", "floor", "twin"], { isDriven: true }, async (sides) => {
        measurements.push(...(await measure(sides)));
        isCpuTime &&= sides.every((side) => !Number.isNaN(side.cpuMilliseconds()));
      });
    }
    if (!isCpuTime) say("This system tells no CPU time of a process: these are elapsed times.");
    tell({ isCpuTime, ...reportOwnCost(measurements), measurements });
  } else {
    await withSides(["service", "floor", "twin", "peer"], { consumes: true }, async (sides) => {
      const plan = quick ? QUICK : FULL;
      const measurements = await measureThroughput(sides, plan);
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
