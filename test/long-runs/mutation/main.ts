import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Command } from "commander";
import { killTree } from "../../node/support/process-tree.ts";
import { positiveNumber, say, wholeNumber } from "../command-line.ts";
import { draw, type Mutant, mutantsOf } from "./mutants.ts";
import { isSimulated, reasonToLeaveOut, testsOf } from "./tests.ts";

const PROJECT = join(import.meta.dirname, "../../..");
/** The share of mutants that the tests must notice. */
const WANTED_SHARE = 0.85;
/** A mutant under which a run takes this many times as long as without one, and so much more, never ends. */
const PATIENCE = { times: 5, seconds: 15 };

/** Tests of many repetitions, which other tests of the same rule make superfluous here. */
const SLOW_TESTS = [
  "1,000 devices at once",
  "100000 are ended",
  "no number has two holders",
  "come out as in some order",
];

const options = new Command("npm run mutate --")
  .description("Changes the source in one small place at a time, in a copy, and tells which changes no test notices.")
  .option("--sample <n>", "draw so many mutants, evenly over the files (default: all)", wholeNumber)
  .option("--seed <n>", "the seed of the draw", wholeNumber, 1)
  .option("--only <places...>", "only where FILE:LINE contains one of these")
  .option("--minutes <n>", "begin with no further mutant after so long", positiveNumber, Number.POSITIVE_INFINITY)
  .option("--list", "only show the mutants")
  .parse()
  .opts<{ sample?: number; seed: number; only?: string[]; minutes: number; list?: boolean }>();

/** A copy of the project: mutants never come near the working tree. */
const copy = mkdtempSync(join(tmpdir(), "mutation-"));

/** What became of a mutant: the run that noticed it, or null where none did. */
interface Fate {
  mutant: Mutant;
  killedBy: string | null;
}

try {
  copyProject();
  process.exitCode = options.list ? list(chosen()) : await tryAll(chosen());
} finally {
  rmSync(copy, { recursive: true, force: true });
}

function copyProject(): void {
  for (const name of readdirSync(PROJECT).filter((one) =>
    /^(src|test|migrations|.*\.(json|toml|ts|yaml))$/.test(one),
  )) {
    cpSync(join(PROJECT, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(PROJECT, "dist"), join(copy, "dist"));
  // Package by package, so that what vitest keeps beside them stays in here.
  mkdirSync(join(copy, "node_modules"));
  for (const name of readdirSync(join(PROJECT, "node_modules")).filter((one) => !/^\.(?!bin)/.test(one))) {
    symlinkSync(join(PROJECT, "node_modules", name), join(copy, "node_modules", name));
  }
}

function chosen(): Mutant[] {
  const { sample = Number.POSITIVE_INFINITY, seed, only = [""] } = options;
  const files = readdirSync(join(copy, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => `src/${file.replaceAll("\\", "/")}`)
    .filter((file) => reasonToLeaveOut(file) === null)
    .sort();
  const all = files.flatMap((file) => mutantsOf(file, readFileSync(join(copy, file), "utf8")));
  const wanted = all.filter(({ file, line }) => only.some((part) => `${file}:${line}`.includes(part)));
  return sample === Number.POSITIVE_INFINITY ? wanted : draw(wanted, sample, seed);
}

function list(mutants: readonly Mutant[]): number {
  for (const mutant of mutants) say(describe(mutant));
  say(`${mutants.length} mutants`);
  return 0;
}

/** @returns the exit code */
async function tryAll(mutants: readonly Mutant[]): Promise<number> {
  const limits = await expectGreen(new Set(mutants.map(({ file }) => file)));
  const fates: Fate[] = [];
  const endsAt = performance.now() + options.minutes * 60_000;
  for (const mutant of mutants) {
    if (performance.now() > endsAt) break;
    const killedBy = await tryMutant(mutant, limits);
    fates.push({ mutant, killedBy });
    say(`${fates.length} of ${mutants.length} ${killedBy ?? "SURVIVED"}: ${describe(mutant)}`);
  }
  for (const [folder, own] of Map.groupBy(fates, ({ mutant }) => dirname(mutant.file))) say(share(folder, own));
  say(share("all", fates));
  const killed = fates.filter(({ killedBy }) => killedBy !== null);
  return killed.length >= WANTED_SHARE * fates.length ? 0 : 1;
}

/** What may notice a mutant of a file, the cheaper first: parameters of Node. */
function runsOf(file: string): string[][] {
  const flags = ["--bail", "1", "--maxWorkers", "1", "-t", `^(?!.*(${SLOW_TESTS.join("|")}))`];
  const simulation = ["--disable-warning=ExperimentalWarning", "test/long-runs/simulation/main.ts", "--seeds", "40"];
  const tests = ["node_modules/vitest/vitest.mjs", "run", ...flags, ...testsOf(file)];
  return isSimulated(file) ? [simulation, tests] : [tests];
}

function nameOf(run: readonly string[]): string {
  return run.filter((word) => word.endsWith(".ts")).join(" ");
}

/**
 * Runs everything on the unchanged copy.
 *
 * @returns how many seconds each run may take
 * @throws Error when one is red: what would notice a mutant must pass without it
 */
async function expectGreen(files: ReadonlySet<string>): Promise<Map<string, number>> {
  const limits = new Map<string, number>();
  for (const [name, run] of new Map([...files].flatMap(runsOf).map((run) => [nameOf(run), run]))) {
    const { isGreen, output, seconds } = await runNode(run, 600);
    if (!isGreen) throw new Error(`${name} is red without a mutant:\n${output.slice(-4000)}`);
    say(`green in ${seconds.toFixed(1)} s: ${name}`);
    limits.set(name, PATIENCE.times * seconds + PATIENCE.seconds);
  }
  return limits;
}

/** @returns what noticed it, or null */
async function tryMutant({ file, start, end, replacement }: Mutant, limits: ReadonlyMap<string, number>) {
  const path = join(copy, file);
  const original = readFileSync(path, "utf8");
  writeFileSync(path, original.slice(0, start) + replacement + original.slice(end));
  try {
    for (const run of runsOf(file)) {
      const { isGreen } = await runNode(run, limits.get(nameOf(run)) ?? 600);
      if (!isGreen) return run.includes("--seeds") ? "killed by the simulation" : "killed by tests";
    }
    return null;
  } finally {
    writeFileSync(path, original);
  }
}

function runNode(parameters: readonly string[], maxSeconds: number) {
  const startedAt = performance.now();
  const env = { ...process.env, NO_COLOR: "1", CI: "1" };
  const child = spawn(process.execPath, parameters, { cwd: copy, stdio: ["ignore", "pipe", "pipe"], env });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (output += bytes));
  const timer = setTimeout(() => child.pid !== undefined && killTree(child.pid), maxSeconds * 1000);
  return new Promise<{ isGreen: boolean; output: string; seconds: number }>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ isGreen: code === 0, output, seconds: (performance.now() - startedAt) / 1000 });
    });
  });
}

function describe({ file, line, original, replacement }: Mutant): string {
  const short = (text: string) => text.replaceAll(/\s+/g, " ").slice(0, 60) || "(nothing)";
  return `${file}:${line} ${short(original)} -> ${short(replacement)}`;
}

function share(name: string, fates: readonly Fate[]): string {
  const killed = fates.filter(({ killedBy }) => killedBy !== null).length;
  return `${name}: ${killed} of ${fates.length} killed, ${((100 * killed) / fates.length).toFixed(0)} %`;
}
