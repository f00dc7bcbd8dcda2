import { setTimeout as wait } from "node:timers/promises";
import { note } from "../command-line.ts";
import type { Expectation, LoadGenerator, Receiver } from "./load.ts";
import {
  type Clients,
  faultsOf,
  neededCalls,
  newClients,
  nextCalls,
  OPERATIONS,
  type Operation,
} from "./operations.ts";
import { percentile } from "./results.ts";
import type { Side, SideName } from "./sides.ts";

/** A side, and the clients that call it. */
export interface Contestant {
  side: Side;
  clients: Clients;
  /** Webhooks that its calls have made so far. */
  webhooks: number;
}

/** @param applications with a webhook URL, and as many without */
export async function newContestant(side: Side, applications: number, webhookUrl: string | null): Promise<Contestant> {
  const clients = newClients({ withWebhook: [], withoutWebhook: [], inTwoHomes: [] });
  for (let count = 0; count < applications; count++) {
    clients.applications.withWebhook.push(await side.makeApplication(webhookUrl));
    clients.applications.withoutWebhook.push(await side.makeApplication(null));
    const home = side.name === "service" && count % 2 === 1 ? 2 : 1;
    clients.applications.inTwoHomes.push(await side.makeApplication(null, home));
  }
  return { side, clients, webhooks: 0 };
}

/** What is measured once a round, on each of its contestants. */
interface Row<Figures> {
  operation: string;
  contestants: readonly Contestant[];
  measure(contestant: Contestant): Promise<Figures>;
}

/** One measurement: one side, one operation, one round. */
export type Measurement<Figures> = Figures & { operation: string; side: SideName; round: number };

/**
 * Measures each row once a round. Within a round the sides follow each other directly, and who is first rotates: what
 * disturbs the machine for a while disturbs all of them.
 *
 * @param plan no further round is begun that would end after the limit; one is always run
 */
export async function inRounds<Figures>(
  { rounds, limitSeconds }: Pick<Plan, "rounds" | "limitSeconds">,
  rows: readonly Row<Figures>[],
): Promise<Measurement<Figures>[]> {
  const measurements: Measurement<Figures>[] = [];
  const startedAt = performance.now();
  const elapsedSeconds = () => (performance.now() - startedAt) / 1000;
  let longestRound = 0;
  for (let round = 0; round < rounds; round++) {
    const roundStart = elapsedSeconds();
    if (round > 0 && roundStart + longestRound > limitSeconds) break;
    if (round % Math.ceil(rounds / 15) === 0) note(`round ${round + 1} of ${rounds}`);
    for (const [place, { operation, contestants, measure }] of rows.entries()) {
      const start = (round + place) % contestants.length;
      for (const contestant of [...contestants.slice(start), ...contestants.slice(0, start)]) {
        measurements.push({ operation, side: contestant.side.name, round, ...(await measure(contestant)) });
      }
    }
    longestRound = Math.max(longestRound, elapsedSeconds() - roundStart);
  }
  return measurements;
}

export interface Plan {
  /** Clients that call at once. */
  connections: number;
  /** Calls that each client makes before a measurement. */
  unmeasuredCallsAClient: number;
  rounds: number;
  /** About how long the floor is given calls in one measurement; the other sides get as many calls. */
  seconds: number;
  limitSeconds: number;
}

/** What clients notice of a measurement, and what it costs. */
export interface LoadFigures {
  calls: number;
  rps: number;
  p50Ms: number;
  p99Ms: number;
  /** CPU time of workerd for one call and its webhook, or null where that cannot be told. */
  cpuMs: number | null;
}

/** Calls of the first burst, which warms up and tells how many calls fill the time. */
const TRIAL_CALLS = 128;
/** Fewer calls than this a client say nothing about the slowest in a hundred. */
const LEAST_CALLS_A_CLIENT = 3;
/** Longest wait for the last webhook of a measurement; one that comes later is counted with the next. */
const WEBHOOKS_SECONDS = 20;

/** Runs operations against the sides and checks every response. */
export async function runBench(
  load: LoadGenerator,
  receiver: Receiver,
  all: readonly Contestant[],
  plan: Plan,
): Promise<Measurement<LoadFigures>[]> {
  const { connections, seconds } = plan;
  const unmeasured = connections * plan.unmeasuredCallsAClient;

  /**
   * The side has not worked while the others did: what it remembered of applications is too old, its code is cold, its
   * connections are closed. So each client makes some calls that are not measured first.
   */
  async function measure(operation: Operation, contestant: Contestant, calls: number): Promise<LoadFigures> {
    const { side, clients } = contestant;
    const needed = neededCalls(operation, clients, unmeasured + calls);
    if (needed.length > 0) await send(needed, operation.needs?.operation, contestant);
    await send(nextCalls(operation, clients, unmeasured), operation, contestant);
    await awaitWebhooks(receiver, contestant);
    const cpuBefore = side.cpuMilliseconds();
    const { exchanges, seconds } = await send(nextCalls(operation, clients, calls), operation, contestant);
    await awaitWebhooks(receiver, contestant);
    const cpuAfter = side.cpuMilliseconds();
    const cpuMs = cpuBefore === null || cpuAfter === null ? null : (cpuAfter - cpuBefore) / calls;
    const times = exchanges.map(({ milliseconds }) => milliseconds);
    const [rps, p50Ms, p99Ms] = [calls / seconds, percentile(times, 0.5), percentile(times, 0.99)];
    const figures = `${Math.round(rps).toString().padStart(6)}/s  p99 ${Math.round(p99Ms)} ms`;
    note(`  ${operation.name.padEnd(30)} ${side.name.padEnd(8)} ${figures}`);
    return { calls, rps, p50Ms, p99Ms, cpuMs };
  }

  /** @throws Error that names the side that gave a wrong response or none */
  async function send(expectations: readonly Expectation[], operation: Operation | undefined, contestant: Contestant) {
    const { side } = contestant;
    const result = await load.send({ port: side.port, clients: connections }, expectations);
    if (operation?.sendsWebhooks) contestant.webhooks += expectations.length;
    const [fault] = await faultsOf(result.exchanges);
    if (fault !== undefined) throw new Error(`${side.name}: ${fault}`);
    return result;
  }

  const rows: Row<LoadFigures>[] = [];
  for (const operation of OPERATIONS) {
    const contestants = all.filter(({ side }) => side.name === "service" || !operation.isServiceOnly);
    let calls = connections * LEAST_CALLS_A_CLIENT;
    for (const contestant of contestants) {
      const { rps } = await measure(operation, contestant, TRIAL_CALLS);
      const fills = operation.isServiceOnly ? "service" : "floor";
      if (contestant.side.name === fills) calls = Math.max(calls, Math.ceil(rps * seconds));
    }
    rows.push({
      operation: operation.name,
      contestants,
      measure: (contestant) => measure(operation, contestant, calls),
    });
  }
  return inRounds(plan, rows);
}

/** Until a side has sent all webhooks of its calls: else they would take time from the next measurement. */
async function awaitWebhooks(receiver: Receiver, contestant: Contestant): Promise<void> {
  const { name } = contestant.side;
  const deadline = performance.now() + WEBHOOKS_SECONDS * 1000;
  const missing = () => contestant.webhooks - receiver.arrivals(name).size;
  while (missing() > 0 && performance.now() < deadline) await wait(5);
  if (missing() <= 0) return;
  note(`${name}: ${missing()} webhooks did not come within ${WEBHOOKS_SECONDS} s`);
  contestant.webhooks -= missing();
}
