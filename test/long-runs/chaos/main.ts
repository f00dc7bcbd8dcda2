import { Command } from "commander";
import { randomSeed, runCommand, say, wholeNumber } from "../command-line.ts";
import { runChaos } from "./run.ts";

const DESCRIPTION = `Kills the service with SIGKILL at random moments under traffic in two homes,
restarts it on the same data, and checks that nothing it ever answered was lost,
changed or given twice, and that every event was delivered.`;

const options = new Command("npm run chaos --")
  .description(DESCRIPTION)
  .option("--kills <n>", "how often it is killed", wholeNumber, 25)
  .option("--seed <n>", "repeats the choices of an earlier run (default: random)", wholeNumber, randomSeed())
  .option("--clients <n>", "clients that call at once in each home", wholeNumber, 4)
  .parse()
  .opts<{ kills: number; seed: number; clients: number }>();

await runCommand(async () => {
  say(`seed ${options.seed}`);
  const { homes } = await runChaos({ ...options, maxLifeMilliseconds: 4000, say });
  for (const [index, { listed, events, deliveries, counts }] of homes.entries()) {
    const calls = `${counts.answered} responses, ${counts.lost} lost`;
    say(`Home ${index + 1}: ${listed} badges, ${events} events in ${deliveries} deliveries, ${calls}.`);
  }
  say("Every promise held, and each home issued numbers of its own only.");
});
