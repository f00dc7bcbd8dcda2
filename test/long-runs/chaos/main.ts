import { Command } from "commander";
import { randomSeed, runCommand, say, wholeNumber } from "../command-line.ts";
import { runChaos } from "./run.ts";

const { kills, seed } = new Command("npm run chaos --")
  .description("Kills the service under traffic, and checks that nothing it answered was lost, changed or given twice.")
  .option("--kills <n>", "how often it is killed", wholeNumber, 25)
  .option("--seed <n>", "repeats the choices of an earlier run (default: random)", wholeNumber, randomSeed())
  .parse()
  .opts<{ kills: number; seed: number }>();

await runCommand(async () => {
  say(`seed ${seed}`);
  for (const [index, { listed, answered, lost }] of (await runChaos(kills, seed, say)).entries()) {
    say(`Home ${index + 1}: ${listed.size} badges, each with its event; ${answered} responses, ${lost} lost.`);
  }
  say("Every promise held, and no number is in both homes.");
});
