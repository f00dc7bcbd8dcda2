import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { expectGreen, type Fate, tryMutant } from "./campaign.ts";
import { type Mutant, mutantsOf } from "./mutants.ts";
import { describeFate, survivors, table } from "./report.ts";
import { draw } from "./sample.ts";
import { reasonToLeaveOut } from "./stages.ts";
import { Workspace } from "./workspace.ts";

const PROJECT = join(import.meta.dirname, "../../..");
/** The share of mutants that the tests must notice. */
const WANTED_SHARE = 0.85;

interface Options {
  sample?: number;
  seed: number;
  only?: string[];
  at?: string[];
  minutes?: number;
  list?: boolean;
  baseline: boolean;
  json?: string;
}

function whole(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("Not a whole number.");
  return Number(text);
}

const options = new Command("npm run mutate --")
  .description("Changes the source in one small place at a time, in a copy, and tells which changes no test notices.")
  .option("--sample <n>", "draw so many mutants, evenly over the files (default: all)", whole)
  .option("--seed <n>", "the seed of the draw", whole, 1)
  .option("--only <files...>", "only of files whose path contains one of these")
  .option("--at <places...>", "only those at FILE:LINE, as a survivor is named")
  .option("--minutes <n>", "begin with no further mutant after so long", whole)
  .option("--list", "only show the mutants")
  .option("--no-baseline", "skip the check that everything is green without a mutant")
  .option("--json <file>", "write what became of each mutant to this file, after each")
  .parse()
  .opts<Options>();

const say = (line: string): boolean => process.stdout.write(`${line}\n`);

const workspace = new Workspace(PROJECT);
try {
  process.exitCode = await run(workspace, chosen(workspace));
} finally {
  workspace.remove();
}

function chosen(from: Workspace): Mutant[] {
  const { sample, seed, only, at } = options;
  const files = from
    .sources()
    .filter((file) => reasonToLeaveOut(file) === null && (!only || only.some((part) => file.includes(part))));
  const all = files.flatMap((file) => mutantsOf(file, from.read(file)));
  const wanted = all.filter(({ file, line }) => !at || at.includes(`${file}:${line}`));
  return sample === undefined ? wanted : draw(wanted, sample, seed);
}

/** @returns the exit code */
async function run(copy: Workspace, mutants: readonly Mutant[]): Promise<number> {
  if (options.list) {
    for (const { file, line, operator, original, replacement } of mutants) {
      say(`${file}:${line} ${operator}: ${original} -> ${replacement}`);
    }
    say(`${mutants.length} mutants`);
    return 0;
  }
  const files = [...new Set(mutants.map(({ file }) => file))];
  if (options.baseline) await expectGreen(copy, files, say);
  const fates: Fate[] = [];
  const endsAt = performance.now() + (options.minutes ?? Number.POSITIVE_INFINITY) * 60_000;
  for (const mutant of mutants) {
    if (performance.now() > endsAt) break;
    const fate = await tryMutant(copy, mutant);
    fates.push(fate);
    say(`${fates.length} of ${mutants.length} ${describeFate(fate)}`);
    if (options.json) writeFileSync(options.json, `${JSON.stringify(fates, null, 2)}\n`);
  }
  say(`\n${table(fates)}\n\n${survivors(fates)}`);
  return fates.filter(({ killedBy }) => killedBy !== null).length >= WANTED_SHARE * fates.length ? 0 : 1;
}
