import { writeFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { Command, Option } from "commander";
import { note, runCommand, say } from "../command-line.ts";
import { LoadGenerator, startReceiver } from "./load.ts";
import { measureOwnCost, OWN_COST_OPERATIONS, ownCostTable, profileOwnCost, summarizeOwnCost } from "./own-cost.ts";
import { summarize, tables } from "./results.ts";
import { newContestant, type Plan, runBench } from "./rounds.ts";
import { type Side, type SideName, withSides } from "./sides.ts";

const DESCRIPTION = `Measures what the service's own code costs, and what its design gains.

Workers run on the same runtime, each in a process of its own with a D1 of its
own on disk, built alike, and serve the same calls of 64 clients:

  service  src/worker/index.ts, built as for a deployment
  floor    the smallest hand-written Worker that makes the same platform calls
           by the same SQL; its allocator and deliveries are the service's
  twin     the floor once more: floor against floor is what noise looks like
  peer     the design most people would write: Hono and D1, a counter row,
           webhooks sent after the response

Every round measures every operation on every side. With --own-cost, service and
floor are called in their own isolates, with D1 and rate limits memoised and log
lines discarded: what is left is the CPU time of the Worker's code, of WebCrypto
and of the runtime's requests and responses.

docs/performance.md says how to read the figures, and what --json writes.`;

const SIDES: readonly SideName[] = ["service", "floor", "twin", "peer"];
const OWN_COST_SIDES: readonly SideName[] = ["service", "floor", "twin"];
/** Applications with a webhook URL, and as many without. */
const APPLICATIONS = 10;
const FULL: Plan = { connections: 64, unmeasuredCallsAClient: 2, rounds: 15, seconds: 1, limitSeconds: 1200 };
const QUICK: Plan = { connections: 64, unmeasuredCallsAClient: 1, rounds: 3, seconds: 0.4, limitSeconds: 80 };
/** A load generator busier than this has a share in the latencies it measures. */
const BUSY_GENERATOR = 0.7;

const { quick, ownCost, json, profile } = new Command("npm run bench --")
  .description(DESCRIPTION)
  .option("--quick", "fewer and shorter rounds: about two minutes")
  .option("--own-cost", "measure the CPU time of the Worker's own code, platform calls memoised: about a minute")
  .option("--json <file>", "write the figures and every single measurement to a file")
  .addOption(
    new Option("--profile <name>", "with --own-cost: only write a CPU profile of this call on each side").choices(
      Object.keys(OWN_COST_OPERATIONS),
    ),
  )
  .parse()
  .opts<{ quick?: true; ownCost?: true; json?: string; profile?: string }>();

await runCommand(async () => {
  if (profile !== undefined && !ownCost) throw new Error("--profile goes with --own-cost");
  const how = { isDriven: true, inspects: profile !== undefined };
  if (ownCost) await withSides(OWN_COST_SIDES, how, runOwnCost);
  else await withSides(SIDES, { consumes: true }, runRounds);
});

async function runOwnCost(sides: readonly Side[]): Promise<void> {
  const contestants = await Promise.all(sides.map((side) => newContestant(side, 1, null)));
  if (profile !== undefined) return profileOwnCost(contestants, profile);
  const measurements = await measureOwnCost(contestants);
  const operations = summarizeOwnCost(measurements);
  const isCpuTime = sides.every((side) => side.cpuMilliseconds() !== null);
  say(`\n${ownCostTable(operations)}`);
  if (!isCpuTime) say("This system tells no CPU time of a process: these are elapsed times.");
  writeJson({ isCpuTime, operations, measurements });
}

async function runRounds(sides: readonly Side[]): Promise<void> {
  const plan = quick ? QUICK : FULL;
  const load = new LoadGenerator();
  const receiver = await startReceiver();
  try {
    const joined = sides.map((side) => newContestant(side, APPLICATIONS, receiver.url(side.name)));
    const measurements = await runBench(load, receiver, await Promise.all(joined), plan);
    const operations = summarize(measurements);
    const generatorBusy = load.highestUtilization;
    const busy = `The load generator was busy ${Math.round(generatorBusy * 100)}% of a measurement at most`;
    const warning = generatorBusy > BUSY_GENERATOR ? ": too busy, the figures are its own in part." : ".";
    say(["", tables(operations), "", busy + warning].join("\n"));
    writeJson({ plan, generatorBusy, operations, measurements });
  } finally {
    await load.close();
    receiver.close();
  }
}

/** If a file is wanted, with when and on what it was measured. */
function writeJson(content: object): void {
  if (json === undefined) return;
  const machine = { cpu: cpus()[0]?.model ?? "unknown", threads: availableParallelism(), node: process.version };
  writeFileSync(json, `${JSON.stringify({ measuredAt: new Date().toISOString(), machine, ...content }, null, 2)}\n`);
  note(`wrote ${json}`);
}
