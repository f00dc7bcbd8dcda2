import { parseArgs } from "node:util";
import { runChaos } from "./run.ts";

const HELP = `Usage: npm run chaos -- [--kills N] [--seed N] [--clients N]

Kills the service with SIGKILL at random moments under traffic, starts it again
on the same data, and checks that nothing it ever answered was lost, changed or
given twice, and that every event was delivered.

Options:
  --kills N     how often it is killed (25)
  --seed N      repeats the choices of an earlier run (random)
  --clients N   clients that call at once (8)
  --help        show this page
`;

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "25" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    clients: { type: "string", default: "8" },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) {
  process.stdout.write(HELP);
} else {
  const seed = Number(values.seed);
  process.stdout.write(`seed ${seed}\n`);
  const result = await runChaos({
    kills: Number(values.kills),
    seed,
    clients: Number(values.clients),
    maxLifeMilliseconds: 4000,
    drains: true,
    say: (line) => process.stdout.write(`${line}\n`),
  });
  process.stdout.write(
    `Every promise held: ${result.listed} badges, ${result.events} events in ${result.deliveries} deliveries, ` +
      `${result.counts.answered} answers, ${result.counts.lost} lost.\n`,
  );
}
