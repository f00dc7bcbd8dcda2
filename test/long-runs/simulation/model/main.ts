import { Command, Option } from "commander";
import { runCommand, say, wholeNumber } from "../../command-line.ts";
import { runModel } from "./model.ts";
import { RULES, type Rule } from "./rules.ts";

const DESCRIPTION = `Runs a model of the core, one writer for each application and its journal, over a D1 that loses,
delays and repeats calls, while both are restored. With --each-rule, how many seeds
fail without each of its rules.`;

const isRule = (name: string): name is Rule => name in RULES;
const NAMES = Object.keys(RULES).filter(isRule);

const options = new Command("npm run model --")
  .description(DESCRIPTION)
  .option("--seeds <n>", "how many seeds, one after the other", wholeNumber, 1000)
  .option("--first <n>", "the first of them", wholeNumber, 1)
  .option("--seed <n>", "this seed only, with its trace", wholeNumber)
  .addOption(new Option("--without <rule>", "leaves one rule out and counts seeds that fail").choices(NAMES))
  .option("--each-rule", "leaves each rule out, one after the other")
  .option("--trace <n>", "steps to show of a seed that fails", wholeNumber, 60)
  .parse()
  .opts<{ seeds: number; first: number; seed?: number; without?: Rule; eachRule?: true; trace: number }>();

const left: ReadonlySet<Rule> = new Set(options.without ? [options.without] : []);

async function runOne(seed: number): Promise<void> {
  const { breach, history, steps } = await runModel(seed, left);
  for (const line of history) say(line);
  say(`seed ${seed}: ${steps} steps; ${breach ? `broke a promise: ${breach.invariant}. ${breach.detail}` : "kept"}`);
}

async function runAll(): Promise<void> {
  for (let seed = options.first; seed < options.first + options.seeds; seed++) {
    const { breach, history } = await runModel(seed, left);
    if (breach) {
      for (const line of options.trace === 0 ? [] : history.slice(-options.trace)) say(line);
      say(`\nSeed ${seed} broke a promise: ${breach.invariant}.\n${breach.detail}`);
      throw new Error(`To repeat it: npm run model -- --seed ${seed}`);
    }
    if (seed % 100 === 0) say(`${seed - options.first + 1} of ${options.seeds} seeds`);
  }
  say(`${options.seeds} seeds kept every promise`);
}

/** @returns seeds that fail without a rule, and the promise that most of them break */
async function countWithout(rule: Rule): Promise<string> {
  const broken: Record<string, number> = {};
  let first = 0;
  for (let seed = options.first; seed < options.first + options.seeds; seed++) {
    const { breach } = await runModel(seed, new Set([rule]));
    if (!breach) continue;
    first ||= seed;
    broken[breach.invariant] = (broken[breach.invariant] ?? 0) + 1;
  }
  const count = Object.values(broken).reduce((sum, many) => sum + many, 0);
  const [most = ""] = Object.entries(broken)
    .sort(([, one], [, other]) => other - one)
    .map(([name]) => name);
  return `${rule.padEnd(28)} ${String(count).padStart(4)} ${String(first || "-").padStart(5)}  ${most}`;
}

await runCommand(async () => {
  if (options.seed !== undefined) return runOne(options.seed);
  if (!options.without && !options.eachRule) return runAll();
  say(`Without a rule: seeds of ${options.seeds} that fail, the first of them, what most of them break.`);
  for (const rule of options.without ? [options.without] : NAMES) say(await countWithout(rule));
});
