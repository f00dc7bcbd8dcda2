import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { createApplications } from "./applications.ts";
import { chart } from "./chart.ts";
import { prepareContestants } from "./contestants.ts";
import { DESCRIPTION } from "./description.ts";
import { LoadGenerator } from "./load.ts";
import { OPERATIONS } from "./operations.ts";
import { measureOwnCost, profileOwnCost } from "./own-cost.ts";
import { OWN_COST_OPERATIONS, startDrivers } from "./own-cost-drivers.ts";
import { ownCostTable } from "./own-cost-table.ts";
import { startReceiver } from "./receiver.ts";
import { summarize } from "./results.ts";
import { Bench, type Measurement, type Plan } from "./rounds.ts";
import type { Side, SideName } from "./side.ts";
import { tables, verdict } from "./table.ts";

const SIDES: readonly SideName[] = ["service", "floor", "twin", "peer"];
const FULL: Plan = { connections: 64, unmeasuredCallsAClient: 2, rounds: 15, seconds: 1, limitSeconds: 1200 };
const QUICK: Plan = { connections: 64, unmeasuredCallsAClient: 1, rounds: 3, seconds: 0.4, limitSeconds: 80 };
/** A load generator busier than this has a share in the latencies it measures. */
const BUSY_GENERATOR = 0.7;

interface Options {
  quick?: boolean;
  ownCost?: boolean;
  json?: string;
  svg?: string;
  profile?: string;
}

const note = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

const started: Side[] = [];
const noteStarted = (side: Side): void => void started.push(side);

async function main(options: Options): Promise<void> {
  refuseUnknown(options);
  const directory = mkdtempSync(join(tmpdir(), "badge-bench-"));
  const clean = async () => {
    await Promise.allSettled(started.map((side) => side.stop()));
    rmSync(directory, { recursive: true, force: true });
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void clean().finally(() => process.exit(1)));
  }
  try {
    note("Building the Workers and starting them …");
    await (options.ownCost ? runOwnCost(directory, options) : runRounds(directory, options));
  } finally {
    await clean();
  }
}

/** What can be profiled depends on what is measured. */
function refuseUnknown({ ownCost, profile, quick, svg }: Options): void {
  const names = ownCost ? Object.keys(OWN_COST_OPERATIONS) : OPERATIONS.map(({ name }) => name);
  if (profile !== undefined && !names.includes(profile)) {
    throw new Error(`${profile} cannot be profiled; choose one of: ${names.join(", ")}`);
  }
  if (ownCost && (quick || svg !== undefined)) throw new Error("--own-cost goes with --json and --profile alone");
}

async function runRounds(directory: string, options: Options): Promise<void> {
  const plan = options.quick ? QUICK : FULL;
  const load = new LoadGenerator();
  const receiver = await startReceiver();
  try {
    const preparation = { directory, inspects: options.profile !== undefined, consumes: true, started: noteStarted };
    const contestants = await prepareContestants(SIDES, preparation, (name, make) =>
      createApplications(make, receiver.url(name)),
    );
    const bench = new Bench(load, receiver, contestants, plan, note);
    if (options.profile === undefined) report(await bench.run(), plan, load.highestUtilization, options);
    else await writeProfiles(bench, options.profile);
  } finally {
    await load.close();
    receiver.close();
  }
}

async function runOwnCost(directory: string, { json, profile }: Options): Promise<void> {
  const drivers = await startDrivers(directory, profile !== undefined, noteStarted);
  if (profile !== undefined) {
    writeProfileFiles(`own-cost-${profile}`, await profileOwnCost(drivers, profile));
    return;
  }
  const { operations, isCpuTime } = await measureOwnCost(drivers, note);
  process.stdout.write(`\n${ownCostTable(operations, isCpuTime)}\n`);
  if (json !== undefined) writeJson(json, { isCpuTime, operations });
}

async function writeProfiles(bench: Bench, name: string): Promise<void> {
  const operation = OPERATIONS.find((each) => each.name === name);
  if (!operation) throw new Error(`no operation is named ${name}`);
  writeProfileFiles(name, await bench.profile(operation));
}

function writeProfileFiles(name: string, profiles: ReadonlyMap<string, string>): void {
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

function report(measurements: readonly Measurement[], plan: Plan, generatorBusy: number, options: Options): void {
  const operations = summarize(measurements);
  const busy = `The load generator was busy ${Math.round(generatorBusy * 100)}% of a measurement at most`;
  const isBusy = generatorBusy > BUSY_GENERATOR;
  const lines = [
    "",
    tables(operations),
    "",
    verdict(operations),
    `${busy}${isBusy ? ": too busy, figures are its own in part." : "."}`,
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
  if (options.json !== undefined) writeJson(options.json, { plan, generatorBusy, operations, measurements });
  if (options.svg !== undefined) writeFileSync(options.svg, chart(operations));
}

const program = new Command("npm run bench --")
  .description(DESCRIPTION)
  .option("--quick", "fewer and shorter rounds: about two minutes")
  .option("--own-cost", "measure the CPU time of the Worker's own code, platform calls memoised: about a minute")
  .option("--json <file>", "write the figures and every single measurement to a file")
  .option("--svg <file>", "write a chart to a file")
  .option("--profile <operation>", "measure nothing, but write a CPU profile of each side's Worker");

try {
  await main(program.parse().opts<Options>());
} catch (error) {
  note(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
