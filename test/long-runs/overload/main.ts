import { Command } from "commander";
import { withSides } from "../bench/sides.ts";
import { note, positiveNumber, randomSeed, runCommand, say, wholeNumber } from "../command-line.ts";
import { type Load, type OverloadResult, type Plan, percentileOf, runOverload } from "./run.ts";

const DESCRIPTION = `Offers the service ten times what it can do, and looks whether it keeps its
promises meanwhile and its speed afterwards.

The built Worker runs in a process of its own, with its state on disk. First
64 connections find out what rate it sustains, and a light load how fast it
responds. Then calls become due at ten times that rate, whether it responds or
not: half are new phones, the others have a badge and sign, or ask for it once
more. A phone that finds no connection gives up after a second, one that waits
for its response after ten.

It fails (exit code 1) when a response is neither 2xx nor 429 or 503 with
Retry-After; when a phone's number changes, two phones get one number, or a
signature is another number's or does not verify; when within ten seconds the
p99 of the light load is not 1.5 times what it was and 20 ms, or less; and
when D1 then has not exactly one badge and one event for each phone that was
answered.`;

const plan = new Command("npm run overload --")
  .description(DESCRIPTION)
  .option("--seconds <n>", "how long the overload lasts", positiveNumber, 60)
  .option("--factor <n>", "how many times the sustainable rate is offered", positiveNumber, 10)
  .option("--connections <n>", "connections of the overload, at most", positiveNumber, 500)
  .option("--timeout-seconds <n>", "how long a phone waits for a response under overload", positiveNumber, 10)
  .option("--seed <n>", "repeats the choices of an earlier run (default: random)", wholeNumber, randomSeed())
  .parse()
  .opts<Plan>();

await runCommand(() =>
  withSides(["service"], {}, async (side) => {
    note(`seed ${plan.seed}`);
    const result = await runOverload(side("service"), plan);
    const faults = faultsOf(result);
    say(`\n${summary(result)}\n\n${faults.length === 0 ? "Every promise held." : faults.join("\n")}`);
    if (faults.length > 0) process.exitCode = 1;
  }),
);

/** What the run showed that it must not, in sentences; empty when all is well. */
function faultsOf({ overload, again, wrong, stored, recoveredAfterSeconds }: OverloadResult): string[] {
  const forbidden = [overload, again].flatMap(({ statuses }) =>
    Object.entries(statuses).filter(([status]) => !/^(2..|429|503)$/.test(status)),
  );
  return [
    ...forbidden.map(([status, count]) => `${count} calls were answered ${status}.`),
    ...(wrong.length > 0 ? [`${wrong.length} wrong responses: ${wrong.slice(0, 20).join("; ")}.`] : []),
    ...stored.contradictions.slice(0, 10).map((text) => `${text}.`),
    ...(recoveredAfterSeconds === null ? ["It was not as fast as before within the time."] : []),
    ...(again.latencies.length < again.offered ? ["Phones that asked again were not all answered."] : []),
  ];
}

function summary(result: OverloadResult): string {
  const { before, overload, after, recoveredAfterSeconds: seconds, stored, again, wrong, badges } = result;
  const perSecond = (count: number) => `${count} (${Math.round(count / plan.seconds)}/s)`;
  const both = (load: Load) => `${percentileOf(load, 0.5)} / ${percentileOf(load, 0.99)} ms`;
  const rows = {
    "sustainable, 64 connections": `${Math.round(result.sustainableRate)}/s`,
    [`offered for ${plan.seconds} s`]: perSecond(overload.offered),
    "answered 2xx": perSecond(overload.latencies.length),
    "refused 429 or 503": perSecond((overload.statuses[429] ?? 0) + (overload.statuses[503] ?? 0)),
    ...Object.fromEntries(Object.entries(overload.unanswered).map(([why, count]) => [why, perSecond(count)])),
    "load generator busy": `${Math.round(overload.utilization * 100)} %`,
    "p50 / p99, light load before": both(before),
    "p50 / p99, overload, of 2xx": both(overload),
    "p50 / p99, light load after": both(after),
    "as fast as before": seconds === null ? "no" : `within ${seconds.toFixed(1)} s`,
    "memory before, highest, after": `${result.memoryMegabytes.join(" / ")} MB`,
    "wrong responses": wrong.length,
    "phones with a badge": `${badges}, ${again.latencies.length} of them only when they asked again`,
    "badges and events in D1": `${stored.badges} and ${stored.events}, ${stored.untold} untold`,
    contradictions: stored.contradictions.length,
  };
  return Object.entries(rows)
    .map(([name, value]) => `${name.padEnd(34)} ${value}`)
    .join("\n");
}
