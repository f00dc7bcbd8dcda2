import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { killTree } from "../../node/support/process-tree.ts";
import { say, wholeNumber } from "../command-line.ts";
import { draw, type Mutant, mutantsOf } from "./mutants.ts";
import { isInPages, isInWorker, isMutated, isSimulated, testsOf, WORKER_TESTS } from "./tests.ts";

const PROJECT = join(import.meta.dirname, "../../..");
/** A run is stopped when it takes this many times as long as all likely tests without a mutant. */
const PATIENCE = 2;
const WHOLE_RUN_SECONDS = 900;

const BUILD_PAGES = ["src/dev/docs-assets.ts"];
const SIMULATION = ["--disable-warning=ExperimentalWarning", "test/long-runs/simulation/main.ts", "--seeds", "40"];

const options = new Command("npm run mutate --")
  .description("Changes the source in one small place at a time, in a copy, and tells which changes no test notices.")
  .option("--sample <n>", "draw so many mutants, evenly over the files (default: all)", wholeNumber)
  .option("--seed <n>", "the seed of the draw", wholeNumber, 1)
  .option("--only <places...>", "only where FILE:LINE contains one of these")
  .parse()
  .opts<{ sample?: number; seed: number; only?: string[] }>();

/** A copy of the project: mutants never come near the working tree. */
const copy = fs.mkdtempSync(join(tmpdir(), "mutation-"));
process.on("exit", () => fs.rmSync(copy, { recursive: true, force: true }));

await tryAll(chosen());

function chosen(): Mutant[] {
  const { sample, seed, only = [""] } = options;
  const files = fs
    .readdirSync(join(PROJECT, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.(tsx?|js)$/.test(file))
    .map((file) => `src/${file}`)
    .filter(isMutated)
    .sort();
  const all = files.flatMap((file) => mutantsOf(file, fs.readFileSync(join(PROJECT, file), "utf8")));
  const wanted = all.filter(({ file, line }) => only.some((part) => `${file}:${line}`.includes(part)));
  return sample === undefined ? wanted : draw(wanted, sample, seed);
}

function copyProject(): void {
  const isLeftOut = (name: string) => /^(\.git|\.wrangler|\.dev\.vars.*|dist|node_modules)$/.test(name);
  const names = fs.readdirSync(PROJECT).filter((name) => !isLeftOut(name));
  for (const name of names) fs.cpSync(join(PROJECT, name), join(copy, name), { recursive: true });
  copyPages();
  // The rehearsal of a deployment asks git what a clone has.
  execFileSync("git", ["init", "--quiet"], { cwd: copy });
  // Package by package, so that what vitest keeps beside them stays in here.
  fs.mkdirSync(join(copy, "node_modules"));
  for (const name of fs.readdirSync(join(PROJECT, "node_modules")).filter((one) => !/^\.(?!bin)/.test(one))) {
    fs.symlinkSync(join(PROJECT, "node_modules", name), join(copy, "node_modules", name));
  }
}

/** What a mutant may change of what is built: the pages. */
function copyPages(): void {
  fs.cpSync(join(PROJECT, "dist/assets"), join(copy, "dist/assets"), { recursive: true });
}

/**
 * Each mutant meets its likely tests. Those that are still alive then meet all tests of the Worker, in one run with all of them; each
 * meets the files that were red in it alone.
 */
async function tryAll(mutants: readonly Mutant[]): Promise<void> {
  copyProject();
  const files = mutants.map(({ file }) => file);
  const greens = [testRun(new Set(files.flatMap(testsOf))), ...(files.some(isSimulated) ? [SIMULATION] : [])];
  let maxSeconds = 0;
  for (const green of greens) maxSeconds = Math.max(maxSeconds, PATIENCE * (await requireGreen(green)));
  const runsOf = ({ file }: Mutant) => [testRun(testsOf(file)), ...(isSimulated(file) ? [SIMULATION] : [])];
  const unlikely = await survivorsOf(mutants, runsOf, maxSeconds);
  const red = await redFilesOf(unlikely.filter(({ file }) => isInWorker(file)));
  const redOf = ({ file }: Mutant) => (red.length > 0 && isInWorker(file) ? [testRun(red)] : []);
  const alive = await survivorsOf(unlikely, redOf, maxSeconds);
  for (const mutant of alive) say(`SURVIVED: ${describe(mutant)}`);
  const killed = mutants.length - alive.length;
  say(`${killed} of ${mutants.length} killed, ${((100 * killed) / mutants.length).toFixed(0)} %`);
}

/** Runs all tests of the Worker on all of these mutants at once. @returns the files that are red, and green without them */
async function redFilesOf(mutants: readonly Mutant[]): Promise<string[]> {
  if (mutants.length === 0) return [];
  const all = testRun(WORKER_TESTS).filter((parameter) => !parameter.startsWith("--bail"));
  const { output } = await withMutants(mutants, () => runNode(all, WHOLE_RUN_SECONDS));
  const red = [...new Set(Array.from(output.matchAll(/FAIL .*?(test\/\S+\.test\.ts)/g), ([, file]) => String(file)))];
  if (red.length > 0) await requireGreen(testRun(red));
  return red;
}

/** Tries each mutant alone. */
async function survivorsOf(mutants: readonly Mutant[], runsOf: (mutant: Mutant) => string[][], maxSeconds: number) {
  const alive: Mutant[] = [];
  for (const [index, mutant] of mutants.entries()) {
    const killer = await tryMutant(mutant, runsOf(mutant), maxSeconds);
    if (killer === undefined) alive.push(mutant);
    const fate = killer === undefined ? "alive" : `killed by ${killer}`;
    say(`${index + 1} of ${mutants.length}: ${describe(mutant)}\n  ${fate}`);
  }
  return alive;
}

/** Parameters of Node for a run of these tests. */
function testRun(tests: Iterable<string>): string[] {
  return ["node_modules/vitest/vitest.mjs", "run", "--bail=1", "--maxWorkers", `${availableParallelism()}`, ...tests];
}

/** Runs tests on the unchanged copy: what would notice a mutant must pass without it. @returns how many seconds it took */
async function requireGreen(run: readonly string[]): Promise<number> {
  const startedAt = performance.now();
  const { isGreen, output } = await runNode(run, WHOLE_RUN_SECONDS);
  if (!isGreen) throw new Error(`red without a mutant: ${run.join(" ")}\n${output.slice(-4000)}`);
  return (performance.now() - startedAt) / 1000;
}

/** @returns what noticed it, if anything did */
function tryMutant(mutant: Mutant, runs: readonly string[][], maxSeconds: number): Promise<string | undefined> {
  return withMutants([mutant], async () => {
    for (const run of isInPages(mutant.file) ? [BUILD_PAGES, ...runs] : runs) {
      const { isGreen, output } = await runNode(run, maxSeconds);
      if (!isGreen) return /FAIL +(.*)/.exec(output)?.[1] ?? output.trim().slice(-200);
    }
    return undefined;
  });
}

/** Puts mutants into the copy while something runs. */
async function withMutants<T>(mutants: readonly Mutant[], act: () => Promise<T>): Promise<T> {
  const originals = new Map(mutants.map(({ file }) => [file, fs.readFileSync(join(copy, file), "utf8")]));
  // From the end of a file, so that places before stay where they are.
  for (const { file, start, end, replacement } of mutants.toSorted((one, other) => other.start - one.start)) {
    const text = fs.readFileSync(join(copy, file), "utf8");
    fs.writeFileSync(join(copy, file), text.slice(0, start) + replacement + text.slice(end));
  }
  try {
    return await act();
  } finally {
    for (const [file, text] of originals) fs.writeFileSync(join(copy, file), text);
    if (mutants.some(({ file }) => isInPages(file))) copyPages();
  }
}

async function runNode(parameters: readonly string[], maxSeconds: number) {
  const env = { ...process.env, NO_COLOR: "1", CI: "1" };
  const child = spawn(process.execPath, parameters, { cwd: copy, stdio: ["ignore", "pipe", "pipe"], env });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (output += bytes));
  const timer = setTimeout(() => killTree(child.pid), maxSeconds * 1000);
  const [code]: unknown[] = await once(child, "close");
  clearTimeout(timer);
  return { isGreen: code === 0, output };
}

function describe({ file, line, original, replacement }: Mutant): string {
  const short = (text: string) => text.replaceAll(/\s+/g, " ").slice(0, 60) || "(nothing)";
  return `${file}:${line} ${short(original)} -> ${short(replacement)}`;
}
