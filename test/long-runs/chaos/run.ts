import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { startService } from "../../node/support/service.ts";
import { startReceiver } from "../bench/load.ts";
import { Dice } from "../dice.ts";
import { Traffic } from "./traffic.ts";

const created = z.object({
  ...{ applicationId: z.string(), applicationSecret: z.string() },
  ...{ firstNumber: z.number(), lastNumber: z.number() },
});

/** Each has an application of its own, and clients of its own that call it. */
const HOMES = [1, 2];

interface ChaosOptions {
  kills: number;
  seed: number;
  /** How many call at once in each home. */
  clients: number;
  /** Longest time between a start and its kill, in milliseconds. */
  maxLifeMilliseconds: number;
  say(line: string): void;
}

/**
 * Kills the service with SIGKILL at random moments under traffic in two homes, restarts it on the same state, and checks at
 * the end that everything it ever answered still holds, in each home, and that the numbers of each are its own.
 *
 * @returns the smaller number of badges that had been answered in a home, at each kill; and of each home: badges that had
 *   been answered; those that are listed; events, deliveries, and calls by outcome
 * @throws Error that says which promise was broken
 */
export async function runChaos({ kills, seed, clients, maxLifeMilliseconds, say }: ChaosOptions) {
  const dice = new Dice(seed);
  // A tenth of the events is refused once, so that retries are part of the run.
  const refused = new Set<string>();
  const refuses = (eventId: string) => dice.below(10) === 0 && refused.size < refused.add(eventId).size;
  const receiver = await startReceiver(refuses);
  let service = await startService();
  try {
    const homes: { home: number; firstNumber: number; lastNumber: number; traffic: Traffic }[] = [];
    for (const home of HOMES) {
      const settings = ["--name", "Chaos", "--home", `${home}`, "--webhook-url", receiver.url(`home${home}`), "--json"];
      const { stdout, stderr } = await service.admin("application", "create", ...settings);
      if (stdout === "") throw new Error(stderr);
      const { firstNumber, lastNumber, ...credentials } = created.parse(JSON.parse(stdout));
      const traffic = new Traffic({ baseUrl: service.origin, ...credentials }, clients, dice.of(`home${home}`));
      homes.push({ home, firstNumber, lastNumber, traffic });
    }
    const callUntil = (end: Promise<unknown>) => Promise.all(homes.map(({ traffic }) => traffic.callUntil(end)));
    const badgesAtKills: number[] = [];
    for (let kill = 1; kill <= kills; kill++) {
      const life = 200 + dice.below(maxLifeMilliseconds);
      await callUntil(wait(life).then(() => service.kill()));
      const badges = homes.map(({ traffic }) => traffic.badges.size);
      badgesAtKills.push(Math.min(...badges));
      say(`kill ${kill} of ${kills} after ${life} ms and ${badges.join(" and ")} badges`);
      service = await service.restart();
    }
    await callUntil(wait(1000));
    const check = (home: number, traffic: Traffic) => traffic.check(receiver.arrivals(`home${home}`));
    const results = await Promise.all(homes.map(({ home, traffic }) => check(home, traffic)));
    const issued = homes.map(({ traffic }) => [...traffic.mirror.keys()].map(Number));
    for (const [index, { home, firstNumber, lastNumber }] of homes.entries()) {
      const all = issued.flat().filter((number) => number >= firstNumber && number <= lastNumber);
      // Numbers are scattered over their range, so those of overlapping ranges would hardly ever meet by themselves.
      const isOwn = all.join() === issued[index]?.join();
      if (!isOwn) throw new Error(`home ${home} issued a number outside its range, or the other home one inside it`);
    }
    return { badgesAtKills, homes: results };
  } finally {
    await service.stop();
    service.remove();
    receiver.close();
  }
}
