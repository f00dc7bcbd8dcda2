import { Option } from "commander";
import { runCommand, say } from "../../command-line.ts";
import { runSeeds, type SeedOptions, seedCommand } from "../seeds.ts";
import { RULES, type Rule } from "./rules.ts";
import { runModel } from "./world.ts";

const DESCRIPTION = `Runs a model of the core, one writer for each application and its journal, over a D1 that loses,
delays and repeats calls, while both are restored. With --each-rule, how many seeds
fail without each of its rules.`;

const isRule = (name: string): name is Rule => name in RULES;
const NAMES = Object.keys(RULES).filter(isRule);

const options = seedCommand("model", DESCRIPTION)
  .addOption(new Option("--without <rule>", "leaves one rule out and counts seeds that fail").choices(NAMES))
  .option("--each-rule", "leaves each rule out, one after the other")
  .parse()
  .opts<SeedOptions & { without?: Rule; eachRule?: true }>();

/** @returns seeds that fail without a rule, and the promise that most of them break */
async function countWithout(rule: Rule): Promise<string> {
  const broken: string[] = [];
  let first = 0;
  for (let seed = options.first; seed < options.first + options.seeds; seed++) {
    const { breach } = await runModel(seed, rule);
    if (!breach) continue;
    first ||= seed;
    broken.push(breach.invariant);
  }
  const [most = []] = [...Map.groupBy(broken, (name) => name).values()].sort((one, other) => other.length - one.length);
  return `${rule.padEnd(32)} ${String(broken.length).padStart(4)} ${String(first || "-").padStart(5)}  ${most[0] ?? ""}`;
}

await runCommand(async () => {
  const { seed, without, eachRule } = options;
  if (seed !== undefined || (!without && !eachRule)) {
    return runSeeds("model", options, (each) => runModel(each, without));
  }
  say(`Without a rule: seeds of ${options.seeds} that fail, the first of them, what most of them break.`);
  for (const rule of without ? [without] : NAMES) say(await countWithout(rule));
});
