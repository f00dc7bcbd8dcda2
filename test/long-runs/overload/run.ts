import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { type Burst, type BurstResult, GAVE_UP, type HttpResponse, LoadGenerator, NOT_SENT } from "../bench/load.ts";
import {
  type Clients,
  type Expectation,
  existing,
  newBadgeOne,
  newClients,
  nextCalls,
  sign,
} from "../bench/operations.ts";
import { percentile } from "../bench/results.ts";
import type { Side } from "../bench/sides.ts";
import { note } from "../command-line.ts";
import { Dice } from "../dice.ts";

export interface Plan {
  seed: number;
  /** How long the overload lasts, in seconds. */
  seconds: number;
  /** How many times the sustainable rate is offered. */
  factor: number;
  /** Most connections of the overload. */
  connections: number;
  /** How long a phone waits for its response under overload. */
  timeoutSeconds: number;
}

const WARM_UP_CALLS = 600;
const TRIAL_CALLS = 1200;
const CONNECTIONS = 64;
/** Calls a second, few enough that they do not wait for each other. */
const LIGHT_RATE = 50;
const LIGHT_SECONDS = 8;
const WINDOW_SECONDS = 2;
const RECOVERY_SECONDS = 10;
/** As fast as before: this many times the p99, and this much more. */
const SLACK = { times: 1.5, milliseconds: 20 } as const;
const ASK_AGAIN = 500;
/** Shares of the calls: a new phone asks for its badge, one that has a badge signs, the rest ask for theirs once more. */
const SHARES = { new: 0.5, sign: 0.4 } as const;

/** How a stretch of load went. */
export interface Load {
  offered: number;
  /** Responses by status. */
  statuses: Record<string, number>;
  /** Calls without a response, by reason. */
  unanswered: Record<string, number>;
  /** Milliseconds from when a call was due until its response, of those answered 2xx. */
  latencies: Float64Array;
  seconds: number;
  utilization: number;
}

/** Overloads a service that runs, and looks whether it keeps its promises and its speed. */
export async function runOverload(side: Side, plan: Plan) {
  // An event is recorded for every badge; no consumer runs, so none is sent.
  const application = await side.makeApplication("https://hooks.example/");
  const phones = new Phones(newClients({ withWebhook: [application], withoutWebhook: [] }), new Dice(plan.seed));
  // The light load has a generator of its own: it begins while phones of the overload still wait.
  const [heavy, light] = [new LoadGenerator(), new LoadGenerator()];
  const send = (generator: LoadGenerator, count: number, how: Omit<Burst, "port" | "calls">) =>
    phones.call((calls) => generator.send({ port: side.port, calls, ...how }), count);
  const lightLoad = (seconds: number) =>
    send(light, seconds * LIGHT_RATE, { clients: CONNECTIONS, rate: LIGHT_RATE, timeoutMilliseconds: 20_000 });
  const memory: number[] = [];
  const watch = setInterval(() => memory.push(side.memoryMegabytes() ?? 0), 1000);
  try {
    await send(heavy, WARM_UP_CALLS, { clients: CONNECTIONS });
    const trial = await send(heavy, TRIAL_CALLS, { clients: CONNECTIONS });
    const sustainableRate = trial.offered / trial.seconds;
    note(`sustainable: ${Math.round(sustainableRate)}/s with ${CONNECTIONS} connections. Light load …`);
    const before = await lightLoad(LIGHT_SECONDS);
    const rate = sustainableRate * plan.factor;
    note(`p99 ${p99(before)} ms. Now ${Math.round(rate)}/s for ${plan.seconds} s …`);
    const memoryBefore = side.memoryMegabytes();
    const how = { clients: plan.connections, rate, timeoutMilliseconds: plan.timeoutSeconds * 1000 };
    const overloading = send(heavy, Math.round(rate * plan.seconds), how);
    await wait(plan.seconds * 1000);
    note("No more is offered. Light load, while phones still wait …");
    const endedAt = performance.now();
    const elapsedSeconds = () => (performance.now() - endedAt) / 1000;
    let after = before;
    let recoveredAfterSeconds: number | null = null;
    while (recoveredAfterSeconds === null && elapsedSeconds() + WINDOW_SECONDS <= RECOVERY_SECONDS) {
      after = await lightLoad(WINDOW_SECONDS);
      const answered = `${after.latencies.length} of ${after.offered} answered`;
      note(`  ${elapsedSeconds().toFixed(1)} s after the end: p99 ${p99(after)} ms, ${answered}`);
      const isFast = p99(after) <= p99(before) * SLACK.times + SLACK.milliseconds;
      if (isFast && after.latencies.length === after.offered) recoveredAfterSeconds = elapsedSeconds();
    }
    const overload = await overloading;
    const memoryMegabytes = [memoryBefore, Math.max(...memory), side.memoryMegabytes()];
    note("Phones that were not answered ask again, and all is compared with D1 …");
    const again = await phones.askAgain((calls) => heavy.send({ port: side.port, clients: CONNECTIONS, calls }));
    const stored = await compareStored(side, application.id, phones.clients);
    const loads = { sustainableRate, before, overload, after, recoveredAfterSeconds, again };
    return { ...loads, memoryMegabytes, wrong: phones.wrong, badges: phones.clients.devices.length, stored };
  } finally {
    clearInterval(watch);
    await Promise.all([heavy.close(), light.close()]);
  }
}

export type OverloadResult = Awaited<ReturnType<typeof runOverload>>;

/** @returns milliseconds */
export const percentileOf = ({ latencies }: Load, share: number): number =>
  Math.round(percentile(latencies, share) * 10) / 10;
const p99 = (load: Load): number => percentileOf(load, 0.99);

/** Phones that call at random and hold the service to what it answered. */
class Phones {
  readonly clients: Clients;
  readonly #dice: Dice;
  /** Responses that no service may give, in words. */
  readonly wrong: string[] = [];
  readonly #unanswered: Expectation[] = [];

  constructor(clients: Clients, dice: Dice) {
    this.clients = clients;
    this.#dice = dice;
  }

  /** Sends the next `count` calls and checks the responses. */
  async call(send: (calls: Burst["calls"]) => Promise<BurstResult>, count: number): Promise<Load> {
    const hasBadges = this.clients.devices.length > 0;
    const expectations = Array.from({ length: Math.round(count) }, () => {
      const share = this.#dice.next();
      const isNew = share < SHARES.new || !hasBadges;
      const operation = isNew ? newBadgeOne : share < SHARES.new + SHARES.sign ? sign : existing;
      return nextCalls(operation, this.clients, 1).map((expectation) => ({ ...expectation, isNew }));
    }).flat();
    const result = await send(expectations.map(({ call }) => call));
    for (const [place, expectation] of expectations.entries()) {
      const response = result.responses[place] ?? NOT_SENT;
      if (response.status === 0 || this.#isRefusal(response)) {
        if (expectation.isNew && response.body !== NOT_SENT.body) this.#unanswered.push(expectation);
      } else await this.#check(expectation, response);
    }
    return loadOf(result);
  }

  /** Phones whose call for a badge nobody answered make it once more. */
  async askAgain(send: (calls: Burst["calls"]) => Promise<BurstResult>): Promise<Load> {
    const again = this.#unanswered.splice(0, ASK_AGAIN);
    const result = await send(again.map(({ call }) => call));
    for (const [place, { call }] of again.entries()) {
      // 200 or 201: the first call may have taken effect.
      const check = ({ body }: HttpResponse) => {
        const { badgeId } = z.object({ badgeId: z.string() }).parse(JSON.parse(body));
        const { userId } = z.object({ userId: z.string() }).parse(JSON.parse(call.body ?? ""));
        if (this.clients.badgeIds.has(badgeId)) throw new Error(`badge number ${badgeId} was given out twice`);
        this.clients.badgeIds.add(badgeId);
        this.clients.devices.push({ udid: call.headers.udid ?? "", userId, badgeId, publicKey: "" });
      };
      await this.#check({ call, check }, result.responses[place] ?? NOT_SENT);
    }
    return loadOf(result);
  }

  /** An overloaded service may refuse, if it says when to come again (contract section 6). */
  #isRefusal({ status, body, retryAfter }: HttpResponse): boolean {
    if (status !== 429 && status !== 503) return false;
    if (!/^\d+$/.test(retryAfter ?? "")) this.wrong.push(`no Retry-After: ${status} ${body}`);
    return true;
  }

  async #check({ call, check }: Expectation, response: HttpResponse): Promise<void> {
    try {
      await check(response);
    } catch (error) {
      this.wrong.push(`${call.path}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

function loadOf({ responses, latencies, seconds, utilization }: BurstResult): Load {
  const statuses: Load["statuses"] = {};
  const unanswered: Load["unanswered"] = {};
  for (const { status, body } of responses) {
    const known = body === NOT_SENT.body || body === GAVE_UP.body;
    const reason = known ? body : (/\bE[A-Z]{4,}\b|socket hang up/.exec(body)?.[0] ?? body);
    if (status === 0) unanswered[reason] = (unanswered[reason] ?? 0) + 1;
    else statuses[status] = (statuses[status] ?? 0) + 1;
  }
  const granted = latencies.filter((_, place) => Math.floor((responses[place]?.status ?? 0) / 100) === 2);
  return { offered: responses.length, statuses, unanswered, latencies: granted, seconds, utilization };
}

const rows = z.array(z.object({ number: z.number(), user_id: z.string() }));
const counted = z.object({ count: z.number() });

/** Holds D1 against what phones were answered: each has exactly one badge, with that number, and one event. */
async function compareStored({ database }: Side, applicationId: string, { devices }: Clients) {
  const select = "SELECT number, user_id FROM badge WHERE application_id = ? AND user_id LIKE 'user-%'";
  const badges = rows.parse((await database.prepare(select).bind(applicationId).all()).results);
  const count = "SELECT count(*) AS count FROM webhook_event WHERE application_id = ?";
  const events = counted.parse(await database.prepare(count).bind(applicationId).first()).count;
  const numbers = Map.groupBy(badges, ({ user_id: userId }) => userId);
  const numbersOf = (userId: string) => (numbers.get(userId) ?? []).map(({ number }) => String(number)).join(", ");
  const different = devices.filter(({ userId, badgeId }) => numbersOf(userId) !== badgeId);
  const contradictions = [
    ...[...numbers].filter(([, own]) => own.length > 1).map(([userId]) => `${userId} has ${numbersOf(userId)}`),
    ...different.map(({ userId, badgeId }) => `${userId} was answered ${badgeId}, D1 has ${numbersOf(userId)}`),
    ...(events === badges.length ? [] : [`${badges.length} badges have ${events} events`]),
  ];
  return { badges: badges.length, events, untold: numbers.size - devices.length, contradictions };
}
