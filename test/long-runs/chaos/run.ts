import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { startService } from "../../node/support/service.ts";
import { startReceiver } from "../bench/load.ts";
import { Dice } from "../dice.ts";
import { Traffic } from "./traffic.ts";

const created = z.object({ applicationId: z.string(), applicationSecret: z.string() });

/** Between a start and its kill. */
const LONGEST_LIFE_MILLISECONDS = 2000;

/** Each has an application of its own, and clients of its own that call it. */
const HOMES = [1, 2];

/**
 * Kills the service with SIGKILL at random moments under traffic in two homes, restarts it on the same state, and checks at
 * the end that everything it ever answered still holds, in each home, and that no number is in both.
 *
 * @param clients how many call at once in each home
 * @returns the smaller number of badges that had been answered in a home, at each kill; and what was found in each home
 * @throws Error that says which promise was broken
 */
export async function runChaos(kills: number, seed: number, clients: number, say: (line: string) => void) {
  const dice = new Dice(seed);
  // A tenth of the events is refused once, so that retries are part of the run.
  const refused = new Set<string>();
  const refuses = (eventId: string) => dice.below(10) === 0 && refused.size < refused.add(eventId).size;
  const receiver = await startReceiver(refuses);
  let service = await startService();
  try {
    const traffics: Traffic[] = [];
    for (const home of HOMES) {
      const settings = ["--name", "Chaos", "--home", `${home}`, "--webhook-url", receiver.url(`home${home}`)];
      settings.push("--new-badges-per-hour", "none", "--json");
      const { stdout, stderr } = await service.admin("application", "create", ...settings);
      if (stdout === "") throw new Error(stderr);
      const application = { baseUrl: service.origin, ...created.parse(JSON.parse(stdout)) };
      traffics.push(new Traffic(application, clients, dice.of(`home${home}`)));
    }
    const callUntil = (end: Promise<unknown>) => Promise.all(traffics.map((traffic) => traffic.callUntil(end)));
    const badgesAtKills: number[] = [];
    for (let kill = 1; kill <= kills; kill++) {
      const life = dice.between(200, LONGEST_LIFE_MILLISECONDS);
      await callUntil(wait(life).then(() => service.kill()));
      const badges = traffics.map((traffic) => traffic.badges.size);
      badgesAtKills.push(Math.min(...badges));
      say(`kill ${kill} of ${kills} after ${life} ms and ${badges.join(" and ")} badges`);
      service = await service.restart();
    }
    await callUntil(wait(1000));
    const arrivals = HOMES.map((home) => receiver.arrivals(`home${home}`));
    const homes = await Promise.all(traffics.map((traffic, index) => traffic.check(arrivals[index] ?? new Map())));
    const numbers = homes.flatMap(({ listed }) => [...listed]);
    if (new Set(numbers).size !== numbers.length) throw new Error("both homes issued one number");
    return { badgesAtKills, homes };
  } finally {
    await service.stop();
    service.remove();
    receiver.close();
  }
}
