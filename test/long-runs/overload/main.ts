import { setTimeout as wait } from "node:timers/promises";
import { Command } from "commander";
import { z } from "zod";
import { type HttpResponse, LoadGenerator, type Pace } from "../bench/load.ts";
import {
  type Clients,
  existing,
  faultsOf,
  newBadgeOne,
  newClients,
  nextCalls,
  type Operation,
  sign,
} from "../bench/operations.ts";
import { percentile } from "../bench/results.ts";
import { type Side, withSides } from "../bench/sides.ts";
import { note, positiveNumber, randomSeed, runCommand, say, wholeNumber } from "../command-line.ts";
import { Dice } from "../dice.ts";

const DESCRIPTION = `Offers the service ten times what it can do, and looks whether it keeps its
promises meanwhile and its speed afterwards.

The built Worker runs in a process of its own, with its state on disk. First
64 connections find out what rate it sustains, and a light load how fast it
responds. Then calls become due at ten times that rate, whether it responds or
not: half are new phones, the others have a badge and sign, or ask for it once
more. A phone that finds no connection gives up after a second, one that waits
for its response after ten.

It fails (exit code 1) when a response is neither 2xx nor 429 or 503 with
Retry-After; when a phone's number changes, two phones get one number, or a
signature is another number's or does not verify; when within ten seconds the
p99 of the light load is not 1.5 times what it was and 20 ms, or less; and
when D1 then has not the number of each phone that was answered, exactly one
badge for each phone, and one event for each badge.`;

const WARM_UP_CALLS = 600;
const TRIAL_CALLS = 1200;
const CONNECTIONS = 64;
/** Few enough calls that they do not wait for each other. */
const LIGHT = { clients: CONNECTIONS, rate: 50, timeoutMilliseconds: 20_000 };
const LIGHT_SECONDS = 8;
const WINDOW_SECONDS = 2;
const RECOVERY_SECONDS = 10;
/** As fast as before: this many times the p99, and this much more. */
const SLACK = { times: 1.5, milliseconds: 20 } as const;

const plan = new Command("npm run overload --")
  .description(DESCRIPTION)
  .option("--seconds <n>", "how long the overload lasts", positiveNumber, 60)
  .option("--factor <n>", "how many times the sustainable rate is offered", positiveNumber, 10)
  .option("--connections <n>", "connections of the overload, at most", positiveNumber, 500)
  .option("--timeout-seconds <n>", "how long a phone waits for a response under overload", positiveNumber, 10)
  .option("--seed <n>", "repeats the choices of an earlier run (default: random)", wholeNumber, randomSeed())
  .parse()
  .opts<{ seconds: number; factor: number; connections: number; timeoutSeconds: number; seed: number }>();

/** @returns what the service did that it must not, in sentences; empty when all is well */
async function overload(side: Side): Promise<string[]> {
  // An event is recorded for every badge; no consumer runs, so none is sent.
  const application = await side.makeApplication("https://hooks.example/");
  const phones = new Phones(side, newClients({ withWebhook: [application], withoutWebhook: [], inTwoHomes: [] }));
  // The light load has a generator of its own: it begins while phones of the overload still wait.
  const [heavy, light] = [new LoadGenerator(), new LoadGenerator()];
  try {
    await phones.call(heavy, WARM_UP_CALLS, { clients: CONNECTIONS });
    const trial = await phones.call(heavy, TRIAL_CALLS, { clients: CONNECTIONS });
    const sustainable = TRIAL_CALLS / trial.seconds;
    say(`sustainable with ${CONNECTIONS} connections: ${Math.round(sustainable)}/s`);
    const before = await phones.call(light, LIGHT_SECONDS * LIGHT.rate, LIGHT);
    say(`light load before: ${before.text}`);
    const rate = sustainable * plan.factor;
    const offered = Math.round(rate * plan.seconds);
    say(`offered for ${plan.seconds} s: ${offered} (${Math.round(rate)}/s)`);
    const how = { clients: plan.connections, rate, timeoutMilliseconds: plan.timeoutSeconds * 1000 };
    const overloading = phones.call(heavy, offered, how);
    await wait(plan.seconds * 1000);
    const recoverySeconds = await untilAsFastAs(before.p99, () =>
      phones.call(light, WINDOW_SECONDS * LIGHT.rate, LIGHT),
    );
    const { text, utilization } = await overloading;
    say(`overload: ${text}; load generator busy ${Math.round(utilization * 100)} %`);
    say(`as fast as before: ${recoverySeconds === null ? "no" : `within ${recoverySeconds.toFixed(1)} s`}`);
    return [
      ...(recoverySeconds === null ? ["It was not as fast as before within the time."] : []),
      ...phones.wrong,
      ...(await contradictionsOf(side, application.id, phones.clients)),
    ];
  } finally {
    await Promise.all([heavy.close(), light.close()]);
  }
}

/** @returns seconds; null when it was not within the time */
async function untilAsFastAs(p99: number, lightLoad: () => Promise<Load>): Promise<number | null> {
  const endedAt = performance.now();
  const elapsedSeconds = () => (performance.now() - endedAt) / 1000;
  while (elapsedSeconds() + WINDOW_SECONDS <= RECOVERY_SECONDS) {
    const after = await lightLoad();
    say(`light load ${elapsedSeconds().toFixed(1)} s after the end: ${after.text}`);
    if (after.isAllGranted && after.p99 <= p99 * SLACK.times + SLACK.milliseconds) return elapsedSeconds();
  }
  return null;
}

/** How a stretch of load went. */
interface Load {
  seconds: number;
  /** Of the load generator. */
  utilization: number;
  isAllGranted: boolean;
  /** Milliseconds from when a call was due until its response, of those answered 2xx. */
  p99: number;
  /** How many calls had which outcome, and how long the granted ones took. */
  text: string;
}

/** Phones that call at random and hold the service to what it answered. */
class Phones {
  readonly clients: Clients;
  /** What no service may answer, in words. */
  readonly wrong: string[] = [];
  readonly #side: Side;
  readonly #dice = new Dice(plan.seed);

  constructor(side: Side, clients: Clients) {
    this.#side = side;
    this.clients = clients;
  }

  /** Makes the next `count` calls and checks the responses. */
  async call(generator: LoadGenerator, count: number, pace: Omit<Pace, "port">): Promise<Load> {
    const next = () => nextCalls(this.#nextOperation(), this.clients, 1);
    const expectations = Array.from({ length: Math.round(count) }, next).flat();
    const { exchanges, ...rest } = await generator.send({ port: this.#side.port, ...pace }, expectations);
    this.wrong.push(...(await faultsOf(exchanges.filter(({ response }) => !isExcused(response)))));
    const outcomes = Map.groupBy(exchanges, ({ response }) => outcomeOf(response));
    const granted = (outcomes.get("2xx") ?? []).map(({ milliseconds }) => milliseconds);
    const [p50, p99] = [percentile(granted, 0.5), percentile(granted, 0.99)];
    const counted = [...outcomes].map(([outcome, { length }]) => `${length} × ${outcome}`).join(", ");
    const text = `${counted}; p50 ${Math.round(p50)} ms, p99 ${Math.round(p99)} ms of 2xx`;
    return { ...rest, isAllGranted: granted.length === exchanges.length, p99, text };
  }

  /** Half of the phones are new; of the others most sign, and the rest ask for their badge once more. */
  #nextOperation(): Operation {
    if (this.clients.devices.length === 0 || this.#dice.chance(0.5)) return newBadgeOne;
    return this.#dice.chance(0.8) ? sign : existing;
  }
}

/** "2xx", another status, or why there was no response. */
function outcomeOf({ status, body }: HttpResponse): string {
  if (status === 0) return /\bE[A-Z]{4,}\b|socket hang up/.exec(body)?.[0] ?? body;
  return status >= 200 && status <= 299 ? "2xx" : String(status);
}

/** An overloaded service may keep silent, or refuse if it says when to come again (contract section 6). */
const isExcused = ({ status, retryAfter }: HttpResponse): boolean =>
  status === 0 || ((status === 429 || status === 503) && /^\d+$/.test(retryAfter ?? ""));

const rows = z.array(z.object({ number: z.number(), user_id: z.string() }));
const counted = z.object({ count: z.number() });

/** Holds D1 against what phones were answered: one badge a phone, with that number, and one event a badge. */
async function contradictionsOf({ database }: Side, applicationId: string, { devices }: Clients): Promise<string[]> {
  const select = "SELECT number, user_id FROM badge WHERE application_id = ? AND user_id LIKE 'user-%'";
  const badges = rows.parse((await database.prepare(select).bind(applicationId).all()).results);
  const count = "SELECT count(*) AS count FROM webhook_event WHERE application_id = ?";
  const events = counted.parse(await database.prepare(count).bind(applicationId).first()).count;
  const numbers = new Map(badges.map(({ number, user_id: userId }) => [userId, String(number)]));
  say(`${devices.length} phones with a badge; ${badges.length} badges and ${events} events in D1`);
  return [
    ...(numbers.size === badges.length ? [] : [`${numbers.size} phones have ${badges.length} badges.`]),
    ...(events === badges.length ? [] : [`${badges.length} badges have ${events} events.`]),
    ...devices
      .filter(({ userId, badgeId }) => numbers.get(userId) !== badgeId)
      .map(({ userId, badgeId }) => `${userId} was answered ${badgeId}, D1 has ${numbers.get(userId)}.`),
  ];
}

await runCommand(() =>
  withSides(["service"], {}, async ([side]) => {
    note(`seed ${plan.seed}`);
    const faults = side ? await overload(side) : ["The service did not start."];
    say(faults.length === 0 ? "Every promise held." : faults.slice(0, 20).join("\n"));
    if (faults.length > 0) process.exitCode = 1;
  }),
);
