import { setTimeout as wait } from "node:timers/promises";
import { note } from "../command-line.ts";
import { type LoadGenerator, NOT_SENT, type Receiver } from "./load.ts";
import { type Clients, nextCalls, OPERATIONS, type Operation } from "./operations.ts";
import { percentile } from "./results.ts";
import type { Side, SideName } from "./sides.ts";

export interface Plan {
  /** Clients that call at once. */
  connections: number;
  /** Calls that each client makes before a measurement. */
  unmeasuredCallsAClient: number;
  rounds: number;
  /** About how long the floor is given calls in one measurement; the other sides get as many calls. */
  seconds: number;
  /** No further round is begun that would end after this. One is always run. */
  limitSeconds: number;
}

/** One measurement: one side, one operation, one round. */
export interface Measurement {
  operation: string;
  side: SideName;
  round: number;
  calls: number;
  rps: number;
  p50Ms: number;
  p99Ms: number;
  /** CPU time of workerd for one call and its webhook, or null where that cannot be told. */
  cpuMs: number | null;
}

export interface Contestant {
  side: Side;
  clients: Clients;
  /** Webhooks that its calls have made so far. */
  webhooks: number;
}

/** Calls of the first burst, which warms up and tells how many calls fill the time. */
const TRIAL_CALLS = 128;
/** Fewer calls than this a client say nothing about the slowest in a hundred. */
const LEAST_CALLS_A_CLIENT = 3;
/** Longest wait for the last webhook of a measurement; one that comes later is counted with the next. */
const WEBHOOKS_SECONDS = 20;

/** Runs operations against the sides and checks every response. */
export class Bench {
  readonly #load: LoadGenerator;
  readonly #receiver: Receiver;
  readonly #contestants: readonly Contestant[];
  readonly #plan: Plan;

  constructor(load: LoadGenerator, receiver: Receiver, contestants: readonly Contestant[], plan: Plan) {
    this.#load = load;
    this.#receiver = receiver;
    this.#contestants = contestants;
    this.#plan = plan;
  }

  /**
   * Measures every operation on every side, once a round. Within a round the sides follow each other directly, and who
   * is first rotates: what disturbs the machine for a while disturbs all of them.
   */
  async run(): Promise<Measurement[]> {
    const { rounds, limitSeconds } = this.#plan;
    const startedAt = performance.now();
    const elapsedSeconds = () => (performance.now() - startedAt) / 1000;
    const counts = new Map<Operation, number>();
    for (const operation of OPERATIONS) counts.set(operation, await this.#warmUp(operation));
    const measurements: Measurement[] = [];
    let longestRound = 0;
    for (let round = 0; round < rounds; round++) {
      const roundStart = elapsedSeconds();
      if (round > 0 && roundStart + longestRound > limitSeconds) break;
      for (const [place, [operation, count]] of [...counts].entries()) {
        const contestants = this.#contestantsOf(operation);
        const start = (round + place) % contestants.length;
        for (const contestant of [...contestants.slice(start), ...contestants.slice(0, start)]) {
          const name = `round ${round + 1} of ${rounds}`;
          measurements.push({ round, ...(await this.#measure(name, operation, contestant, count)) });
        }
      }
      longestRound = Math.max(longestRound, elapsedSeconds() - roundStart);
    }
    return measurements;
  }

  #contestantsOf({ isServiceOnly }: Operation): readonly Contestant[] {
    return isServiceOnly ? this.#contestants.filter(({ side }) => side.name === "service") : this.#contestants;
  }

  /** @returns how many calls a measurement of this operation has, on every side */
  async #warmUp(operation: Operation): Promise<number> {
    const { connections, seconds } = this.#plan;
    let count = connections * LEAST_CALLS_A_CLIENT;
    for (const contestant of this.#contestantsOf(operation)) {
      const { rps } = await this.#measure("warming up", operation, contestant, TRIAL_CALLS);
      const measure = operation.isServiceOnly ? "service" : "floor";
      if (contestant.side.name === measure) count = Math.max(count, Math.ceil(rps * seconds));
    }
    return count;
  }

  /**
   * The side has not worked while the others did: what it remembered of applications is too old, its code is cold, its
   * connections are closed. So each client makes some calls that are not measured first.
   */
  async #measure(what: string, operation: Operation, contestant: Contestant, calls: number) {
    const { side, clients } = contestant;
    const unmeasured = this.#plan.connections * this.#plan.unmeasuredCallsAClient;
    const missing = operation.needs?.missing(clients, unmeasured + calls) ?? 0;
    if (operation.needs && missing > 0) await this.#send(operation.needs.operation, contestant, missing);
    await this.#send(operation, contestant, unmeasured);
    await this.#awaitWebhooks(contestant);
    const cpuBefore = side.cpuMilliseconds();
    const { latencies, seconds } = await this.#send(operation, contestant, calls);
    await this.#awaitWebhooks(contestant);
    const cpuAfter = side.cpuMilliseconds();
    const cpuMs = cpuBefore === null || cpuAfter === null ? null : (cpuAfter - cpuBefore) / calls;
    const [rps, p50Ms, p99Ms] = [calls / seconds, percentile(latencies, 0.5), percentile(latencies, 0.99)];
    const figures = `${Math.round(rps).toString().padStart(6)}/s  p99 ${Math.round(p99Ms)} ms`;
    note(`${what.padEnd(14)} ${operation.name.padEnd(30)} ${side.name.padEnd(8)} ${figures}`);
    return { operation: operation.name, side: side.name, calls, rps, p50Ms, p99Ms, cpuMs };
  }

  /** Until a side has sent all webhooks of its calls: else they would take time from the next measurement. */
  async #awaitWebhooks(contestant: Contestant): Promise<void> {
    const { name } = contestant.side;
    const deadline = performance.now() + WEBHOOKS_SECONDS * 1000;
    const missing = () => contestant.webhooks - this.#receiver.arrivals(name).size;
    while (missing() > 0 && performance.now() < deadline) await wait(5);
    if (missing() <= 0) return;
    note(`${name}: ${missing()} webhooks did not come within ${WEBHOOKS_SECONDS} s`);
    contestant.webhooks -= missing();
  }

  /** @throws Error that names the side that gave a wrong response or none */
  async #send(operation: Operation, contestant: Contestant, count: number) {
    const { side, clients } = contestant;
    const expectations = nextCalls(operation, clients, count);
    const calls = expectations.map(({ call }) => call);
    const result = await this.#load.send({ port: side.port, clients: this.#plan.connections, calls });
    if (operation.sendsWebhooks) contestant.webhooks += calls.length;
    for (const [place, { check }] of expectations.entries()) {
      try {
        await check(result.responses[place] ?? NOT_SENT);
      } catch (error) {
        throw new Error(`${side.name}, ${operation.name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    return result;
  }
}
