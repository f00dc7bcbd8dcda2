import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import type { Side } from "../bench/side.ts";
import { failures, summary } from "./report.ts";
import { type Plan, runOverload } from "./run.ts";
import { startBuilt } from "./service.ts";

const DESCRIPTION = `Offers the service ten times what it can do, and looks whether it keeps its
promises meanwhile and its speed afterwards.

The built Worker runs in a process of its own, with its state on disk. First
64 connections find out what rate it sustains, and a light load how fast it
answers. Then calls become due at ten times that rate, whether it answers or
not: half are new phones, the others have a badge and sign, or ask for it once
more. A phone that finds no connection gives up after a second, one that waits
for its answer after ten.

It fails (exit code 1) when an answer is neither 2xx nor 429 or 503 with
Retry-After; when a phone's number changes, two phones get one number, or a
signature is another number's or does not verify; when within ten seconds the
p99 of the light load is not 1.5 times what it was and 20 ms, or less; and
when D1 then has not exactly one badge and one event for each phone that was
answered.`;

interface Options extends Plan {
  json?: string;
}

const note = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError("It must be a number above zero.");
  return value;
}

async function main({ json, ...plan }: Options): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "badge-overload-"));
  const sides: Side[] = [];
  const stop = async () => {
    await Promise.allSettled(sides.map((side) => side.stop()));
    rmSync(directory, { recursive: true, force: true });
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void stop().finally(() => process.exit(1)));
  }
  try {
    note(`seed ${plan.seed}. Building the Worker and starting it …`);
    const [side, application] = await startBuilt(directory, (started) => sides.push(started));
    const result = await runOverload(side, application, plan, note);
    const faults = failures(result);
    const verdict = faults.length === 0 ? ["Every promise held."] : faults;
    process.stdout.write(`\n${summary(result, plan)}\n\n${verdict.join("\n")}\n`);
    if (faults.length > 0) process.exitCode = 1;
    if (json !== undefined) {
      const machine = { cpu: cpus()[0]?.model ?? "unknown", threads: availableParallelism(), node: process.version };
      const { latencies: _, ...overload } = result.overload;
      const { latencies: __, ...again } = result.again;
      const content = { measuredAt: new Date().toISOString(), plan, machine, ...result, overload, again, faults };
      writeFileSync(json, `${JSON.stringify(content, null, 2)}\n`);
    }
  } finally {
    await stop();
  }
}

const program = new Command("npm run overload --")
  .description(DESCRIPTION)
  .option("--seconds <n>", "how long the overload lasts", positive, 60)
  .option("--factor <n>", "how many times the sustainable rate is offered", positive, 10)
  .option("--connections <n>", "connections of the overload, at most", positive, 500)
  .option("--timeout-seconds <n>", "how long a phone waits for an answer under overload", positive, 10)
  .addOption(
    new Option("--seed <n>", "repeats the choices of an earlier run")
      .argParser(Number)
      .default(Math.floor(Math.random() * 2 ** 31), "another each time"),
  )
  .option("--json <file>", "write every figure to a file");

try {
  await main(program.parse().opts<Options>());
} catch (error) {
  note(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
