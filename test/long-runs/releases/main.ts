import { Command } from "commander";
import { note, runCommand, say, table } from "../command-line.ts";
import { CallsOfPhase, prepare } from "./calls.ts";
import { withReleases } from "./two-releases.ts";

const DESCRIPTION = `Runs the Worker of a commit with the objects of this checkout, and the other way round, on the same
data, as a gradual deployment does. It prints what each call led to, and fails (exit code 1) when one was neither carried
out nor refused with a code of its own, or when D1 or the allocator has something else afterwards.`;

const { with: reference } = new Command("npm run releases --")
  .description(DESCRIPTION)
  .requiredOption("--with <ref>", "the other commit, such as v0.9.0 or HEAD~5")
  .parse()
  .opts<{ with: string }>();

/** Who responds, and whose objects it calls, one after the other on the same data. */
const PHASES = [
  { worker: "other", objects: "other" },
  { worker: "other", objects: "this" },
  { worker: "this", objects: "other" },
  { worker: "this", objects: "this" },
] as const;

await runCommand(() =>
  withReleases(reference, async (run) => {
    const rows = new Map<string, string[]>();
    const failures: string[] = [];
    const prepared = await run(PHASES[0], (service) => prepare(service, PHASES.length));
    for (const [index, phase] of PHASES.entries()) {
      const name = `${phase.worker} → ${phase.objects}`;
      note(`Worker → objects: ${name}`);
      const outcomes = await run(phase, (service) => new CallsOfPhase(service, prepared, index).make());
      for (const { call, result, isFailure } of outcomes) {
        rows.set(call, [...(rows.get(call) ?? []), result]);
        if (isFailure) failures.push(`${name}, ${call}: ${result}`);
      }
    }
    const head = ["Worker → objects", ...PHASES.map(({ worker, objects }) => `${worker} → ${objects}`)];
    say(
      table(
        head,
        [...rows].map(([call, results]) => [call, ...results]),
      ),
    );
    if (failures.length > 0) throw new Error(`\n${failures.join("\n")}`);
  }),
);
