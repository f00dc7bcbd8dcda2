import { writeFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { Command } from "commander";
import { note, runCommand, say } from "../command-line.ts";
import { chart } from "./chart.ts";
import { LoadGenerator, startReceiver } from "./load.ts";
import { newClients, OPERATIONS } from "./operations.ts";
import { OWN_COST_OPERATIONS, OWN_COST_SIDES, OwnCostBench, ownCostTable } from "./own-cost.ts";
import { compared, summarize, tables, verdict } from "./results.ts";
import { Bench, type Contestant, type Plan } from "./rounds.ts";
import { type Side, type SideName, withSides } from "./sides.ts";

const DESCRIPTION = `Measures what the service's own code costs, and what its design gains.

Workers run on the same runtime, each in a process of its own with a D1 of its
own on disk, built alike, and serve the same calls of 64 clients:

  service  src/worker/index.ts, built as for a deployment
  floor    the smallest hand-written Worker that makes the same platform calls
           by the same SQL; its deliveries are the service's
  twin     the floor once more: floor against floor is what noise looks like
  peer     the design most people would write: Hono and D1, a counter row,
           webhooks sent after the response

A round measures every operation on every side. What is shown are medians of the
rounds' ratios with their 95 % intervals; a row is a tie when its interval
overlaps that of floor against floor. Every response is checked, every side sends
its webhooks while it is measured, and its CPU time counts until the last one has
arrived. docs/performance.md says how to read the figures.

With --own-cost, service and floor are called in their own isolates, with D1 and
rate limits memoised and log lines discarded: what is left is the CPU time of the
Worker's code, of WebCrypto and of the runtime's requests and responses.

--json writes {measuredAt, machine, plan, operations, measurements}; with
--own-cost {measuredAt, machine, isCpuTime, operations: [{name,
serviceMicroseconds, floorMicroseconds, …, measurements}]}.`;

const SIDES: readonly SideName[] = ["service", "floor", "twin", "peer"];
/** Applications with a webhook URL, and as many without. */
const APPLICATIONS = 10;
const FULL: Plan = { connections: 64, unmeasuredCallsAClient: 2, rounds: 15, seconds: 1, limitSeconds: 1200 };
const QUICK: Plan = { connections: 64, unmeasuredCallsAClient: 1, rounds: 3, seconds: 0.4, limitSeconds: 80 };
/** A load generator busier than this has a share in the latencies it measures. */
const BUSY_GENERATOR = 0.7;

const options = new Command("npm run bench --")
  .description(DESCRIPTION)
  .option("--quick", "fewer and shorter rounds: about two minutes")
  .option("--own-cost", "measure the CPU time of the Worker's own code, platform calls memoised: about a minute")
  .option("--json <file>", "write the figures and every single measurement to a file")
  .option("--svg <file>", "write a chart to a file")
  .option("--profile <operation>", "measure nothing, but write a CPU profile of each side's Worker")
  .parse()
  .opts<{ quick?: boolean; ownCost?: boolean; json?: string; svg?: string; profile?: string }>();

await runCommand(async () => {
  const { ownCost = false, profile, quick, svg } = options;
  const names = ownCost ? Object.keys(OWN_COST_OPERATIONS) : OPERATIONS.map(({ name }) => name);
  if (profile !== undefined && !names.includes(profile)) {
    throw new Error(`${profile} cannot be profiled; choose one of: ${names.join(", ")}`);
  }
  if (ownCost && (quick || svg !== undefined)) throw new Error("--own-cost goes with --json and --profile alone");
  const inspects = profile !== undefined;
  if (ownCost) await withSides(OWN_COST_SIDES, { inspects }, runOwnCost);
  else await withSides(SIDES, { inspects, consumes: true }, runRounds);
});

async function runOwnCost(side: (name: SideName) => Side): Promise<void> {
  const bench = await OwnCostBench.prepare(side);
  const { profile, json } = options;
  if (profile !== undefined) return writeProfiles(`own-cost-${profile}`, await bench.profile(profile));
  const { operations, isCpuTime } = await bench.measure();
  say(`\n${ownCostTable(operations, isCpuTime)}`);
  if (json !== undefined) writeJson(json, { isCpuTime, operations });
}

async function runRounds(side: (name: SideName) => Side): Promise<void> {
  const plan = options.quick ? QUICK : FULL;
  const load = new LoadGenerator();
  const receiver = await startReceiver();
  try {
    const contestants: Contestant[] = [];
    for (const name of SIDES) contestants.push(await makeContestant(side(name), receiver.url(name)));
    const bench = new Bench(load, receiver, contestants, plan);
    const profiled = OPERATIONS.find(({ name }) => name === options.profile);
    if (profiled) return writeProfiles(profiled.name, await bench.profile(profiled));
    const measurements = await bench.run();
    const operations = summarize(measurements);
    const generatorBusy = load.highestUtilization;
    const busy = `The load generator was busy ${Math.round(generatorBusy * 100)}% of a measurement at most`;
    const warning = generatorBusy > BUSY_GENERATOR ? ": too busy, the figures are its own in part." : ".";
    say(["", tables(operations), "", verdict(operations), busy + warning].join("\n"));
    if (options.json !== undefined) writeJson(options.json, { plan, generatorBusy, operations, measurements });
    if (options.svg !== undefined) writeFileSync(options.svg, chart(compared(operations)));
  } finally {
    await load.close();
    receiver.close();
  }
}

async function makeContestant(side: Side, webhookUrl: string): Promise<Contestant> {
  const clients = newClients({ withWebhook: [], withoutWebhook: [] });
  for (let count = 0; count < APPLICATIONS; count++) {
    clients.applications.withWebhook.push(await side.makeApplication(webhookUrl));
    clients.applications.withoutWebhook.push(await side.makeApplication(null));
  }
  return { side, clients, webhooks: 0 };
}

function writeProfiles(name: string, profiles: ReadonlyMap<string, string>): void {
  for (const [side, profile] of profiles) {
    const file = `${side}-${name.replaceAll(/[^a-z0-9]+/g, "-")}.cpuprofile`;
    writeFileSync(file, profile);
    note(`wrote ${file}`);
  }
}

/** With when and on what it was measured. */
function writeJson(file: string, content: object): void {
  const machine = { cpu: cpus()[0]?.model ?? "unknown", threads: availableParallelism(), node: process.version };
  writeFileSync(file, `${JSON.stringify({ measuredAt: new Date().toISOString(), machine, ...content }, null, 2)}\n`);
}
