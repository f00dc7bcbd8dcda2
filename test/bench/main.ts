import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { Command, Option } from "commander";
import { chart } from "./chart.ts";
import { prepareContestants } from "./contestants.ts";
import { LoadGenerator } from "./load.ts";
import { OPERATIONS } from "./operations.ts";
import { startReceiver } from "./receiver.ts";
import { type OperationResult, summarize } from "./results.ts";
import { Bench, type Plan } from "./rounds.ts";
import type { Side } from "./side.ts";
import { tables, verdict } from "./table.ts";

const FULL: Plan = { connections: 64, unmeasuredCallsAClient: 2, rounds: 15, seconds: 1, limitSeconds: 900 };
const QUICK: Plan = { connections: 64, unmeasuredCallsAClient: 1, rounds: 3, seconds: 0.5, limitSeconds: 100 };
/** A load generator busier than this has a share in the latencies it measures. */
const BUSY_GENERATOR = 0.7;

const DESCRIPTION = `Measures what the service's own code costs, and what its design gains.

Three Workers run on the same runtime, each in a process of its own with a D1
of its own on disk, and answer the same calls of 64 clients:

  service  src/worker.ts, built as for a deployment
  floor    test/bench/floor.ts, the smallest hand-written Worker that makes the
           same platform calls: no router, no validation, no query builder
  peer     test/bench/peer.ts, the design most people would write: Hono and D1,
           a counter row and a unique index, webhooks sent after the answer

A round measures every operation on every side; the sides follow each other
directly, who is first rotates. What is shown are medians over the rounds,
with the smallest and the largest ratio of a single round in brackets.

Ratios are the result, absolute times are not: D1, objects, queues and rate
limits are simulated locally, on the one thread of each runtime, and cost
every side the same. The CPU ratio hardly changes when others use the machine.

Every answer is checked: its status, that no badge number comes twice, that a
device keeps its number and that signatures verify. Rate limits are asked and
never refuse. The queue takes wake-ups and nobody consumes them; the peer
sends its webhooks while it is measured, hence the rows without a webhook. The
service writes one log line a request (discarded here), floor and peer write
none.`;

interface Options {
  quick?: boolean;
  json?: string;
  svg?: string;
  profile?: string;
}

const note = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

async function main(options: Options): Promise<void> {
  const plan = options.quick ? QUICK : FULL;
  const directory = mkdtempSync(join(tmpdir(), "badge-bench-"));
  const load = new LoadGenerator();
  const receiver = await startReceiver();
  const sides: Side[] = [];
  const stop = async () => {
    await Promise.allSettled([...sides.map((side) => side.stop()), load.close()]);
    receiver.close();
    rmSync(directory, { recursive: true, force: true });
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void stop().finally(() => process.exit(1)));
  }
  try {
    note("Building the three Workers and starting them …");
    const inspect = options.profile !== undefined;
    const contestants = await prepareContestants(directory, receiver.url, inspect, (side) => sides.push(side));
    const bench = new Bench(load, contestants, plan, note);
    if (options.profile === undefined) report(summarize(await bench.run()), plan, load.highestUtilization, options);
    else await writeProfiles(bench, options.profile);
  } finally {
    await stop();
  }
}

async function writeProfiles(bench: Bench, name: string): Promise<void> {
  const operation = OPERATIONS.find((each) => each.name === name);
  if (!operation) throw new Error(`no operation is named ${name}`);
  for (const [side, profile] of await bench.profile(operation)) {
    const file = `${side}-${name.replaceAll(/[^a-z0-9]+/g, "-")}.cpuprofile`;
    writeFileSync(file, profile);
    note(`wrote ${file}`);
  }
}

function report(results: readonly OperationResult[], plan: Plan, generatorBusy: number, options: Options): void {
  const busy = `The load generator was busy ${Math.round(generatorBusy * 100)}% of a measurement at most`;
  const isBusy = generatorBusy > BUSY_GENERATOR;
  const lines = [
    "",
    tables(results),
    "",
    verdict(results),
    `${busy}${isBusy ? ": too busy, figures are its own in part." : "."}`,
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
  if (options.json !== undefined) {
    const machine = { cpu: cpus()[0]?.model ?? "unknown", threads: availableParallelism(), node: process.version };
    const content = { measuredAt: new Date().toISOString(), plan, machine, generatorBusy, operations: results };
    writeFileSync(options.json, `${JSON.stringify(content, null, 2)}\n`);
  }
  if (options.svg !== undefined) writeFileSync(options.svg, chart(results));
}

const program = new Command("npm run bench --")
  .description(DESCRIPTION)
  .option("--quick", "fewer and shorter rounds: under two minutes")
  .option("--json <file>", "write every figure to a file")
  .option("--svg <file>", "write a chart to a file")
  .addOption(
    new Option("--profile <operation>", "measure nothing, but write a CPU profile of each side's Worker").choices(
      OPERATIONS.map(({ name }) => name),
    ),
  );

try {
  await main(program.parse().opts<Options>());
} catch (error) {
  note(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
