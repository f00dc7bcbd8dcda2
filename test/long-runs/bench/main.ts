import { writeFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { Command, Option } from "commander";
import { note, runCommand, say } from "../command-line.ts";
import { measureOwnCost, OWN_COST_OPERATIONS, profileOwnCost, reportOwnCost } from "./own-cost.ts";
import { LEGEND } from "./rounds.ts";
import { withSides } from "./sides.ts";
import { FULL, measureThroughput, QUICK, reportThroughput } from "./throughput.ts";

const DESCRIPTION = `Measures the service beside the floor, the smallest hand-written Worker that makes
the same platform calls by the same SQL; the floor once more (the twin: what it
differs is noise); and a peer, the design most people would write for new badges
and logins: Hono and D1, a counter row, webhooks sent after the response.

All are built alike, run in processes of their own and serve the same calls of 64
clients. With --own-cost, service and floor are called in their own isolates, with
D1 and rate limits memoised and log lines discarded.

docs/performance.md says how to read the figures, and what --json writes.`;

const { quick, ownCost, json, profile } = new Command("npm run bench --")
  .description(DESCRIPTION)
  .option("--quick", "fewer and shorter rounds: about two minutes")
  .option("--own-cost", "measure the CPU time of the Worker's own code, platform calls memoised: about a minute")
  .option("--json <file>", "write the figures and every single measurement to a file")
  .addOption(
    new Option("--profile <name>", "with --own-cost: only write a CPU profile of this call on each side").choices(
      OWN_COST_OPERATIONS.map(({ name }) => name),
    ),
  )
  .parse()
  .opts<{ quick?: true; ownCost?: true; json?: string; profile?: string }>();

await runCommand(async () => {
  if (profile !== undefined) {
    if (!ownCost) throw new Error("--profile goes with --own-cost");
    await withSides(["service", "floor"], { isDriven: true, inspects: true }, (sides) =>
      profileOwnCost(sides, profile),
    );
  } else if (ownCost) {
    await withSides(["service", "floor", "twin"], { isDriven: true }, async (sides) => {
      const measurements = await measureOwnCost(sides);
      const isCpuTime = sides.every((side) => !Number.isNaN(side.cpuMilliseconds()));
      if (!isCpuTime) say("This system tells no CPU time of a process: these are elapsed times.");
      tell({ isCpuTime, ...reportOwnCost(measurements), measurements });
    });
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
