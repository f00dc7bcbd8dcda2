import { Command } from "commander";
import { randomSeed, runCommand, say, wholeNumber } from "../command-line.ts";
import { runChaos } from "./run.ts";

const options = new Command("npm run chaos --")
  .description("Kills the service under traffic, and checks that nothing it answered was lost, changed or given twice.")
  .option("--kills <n>", "how often it is killed", wholeNumber, 25)
  .option("--seed <n>", "repeats the choices of an earlier run (default: random)", wholeNumber, randomSeed())
  .parse()
  .opts<{ kills: number; seed: number }>();

/** That call at once in each home. */
const CLIENTS = 4;

await runCommand(async () => {
  const { kills, seed } = options;
  say(`seed ${seed}`);
  const { homes } = await runChaos(kills, seed, CLIENTS, say);
  for (const [index, { listed, events, deliveries, counts }] of homes.entries()) {
    const calls = `${counts.answered} responses, ${counts.lost} lost`;
    say(`Home ${index + 1}: ${listed.size} badges, ${events} events in ${deliveries} deliveries, ${calls}.`);
  }
  say("Every promise held, and no number is in both homes.");
});
