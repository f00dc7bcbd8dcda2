import { setTimeout as wait } from "node:timers/promises";
import { note } from "../command-line.ts";
import { startReceiver } from "./load.ts";
import { OPERATIONS, type Operation } from "./operations.ts";
import { type Contestant, callSide, inRounds, newContestant, percentile, summarize, summaryTable } from "./rounds.ts";
import type { Side } from "./sides.ts";

const APPLICATIONS = 10;
/** Clients that call at once. */
const CLIENTS = 64;
/** Fewer than three calls a client say nothing about the slowest in a hundred. */
export const FULL = { rounds: 15, limitSeconds: 1200, warmUpCalls: 128, calls: 512, unmeasuredCalls: 128 };
export const QUICK = { rounds: 3, limitSeconds: 80, warmUpCalls: 128, calls: 192, unmeasuredCalls: 64 };
/** Longest wait for the last webhook of a measurement; one that comes later is counted with the next. */
const WEBHOOKS_SECONDS = 20;

/** Runs operations against the sides and checks every response. @param only the name of one operation; undefined: all */
export async function measureThroughput(sides: readonly Side[], plan: typeof FULL, only?: string) {
  const { unmeasuredCalls } = plan;
  const receiver = await startReceiver();

  /**
   * The side has not worked while the others did: what it remembered of applications is too old, its code is cold, its
   * connections are closed. So each client makes some calls that are not measured first.
   */
  async function measure(operation: Operation, contestant: Contestant, calls: number) {
    const { clients } = contestant;
    const { needs } = operation;
    const make = (count: number, { next } = operation) => {
      const expectations = Array.from({ length: Math.max(0, count) }, () => next(clients));
      return callSide(contestant, CLIENTS, expectations);
    };
    if (needs) await make(unmeasuredCalls + calls - clients.invitations.length, needs);
    await make(unmeasuredCalls);
    await awaitWebhooks(contestant);
    const cpuBefore = contestant.cpuMilliseconds();
    const { times, seconds } = await make(calls);
    await awaitWebhooks(contestant);
    // Of workerd, for one call and its webhook; NaN where that cannot be told.
    const cpuMs = (contestant.cpuMilliseconds() - cpuBefore) / calls;
    return { calls, rps: calls / seconds, p99Ms: percentile(times, 0.99), cpuMs };
  }

  /** Until a side has sent all webhooks of its calls: else they would take time from the next measurement. */
  async function awaitWebhooks({ name, clients }: Contestant): Promise<void> {
    const deadline = performance.now() + WEBHOOKS_SECONDS * 1000;
    const missing = () => clients.webhooks - receiver.arrivals(name).size;
    while (missing() > 0 && performance.now() < deadline) await wait(5);
    if (missing() <= 0) return;
    note(`${name}: ${missing()} webhooks did not come within ${WEBHOOKS_SECONDS} s`);
    clients.webhooks -= missing();
  }

  const joined = sides.map((side) => newContestant(side, APPLICATIONS, receiver.url(side.name)));
  const measured = OPERATIONS.filter(({ name }) => only === undefined || name === only);
  try {
    return await inRounds(plan, measured, await Promise.all(joined), measure);
  } finally {
    receiver.close();
  }
}

const FIGURES = ["rps", "p99Ms", "cpuMs"] as const;

/** Medians of each side, and the ratios of the rounds. */
export function reportThroughput(measurements: Awaited<ReturnType<typeof measureThroughput>>): string {
  const names = [...new Set(measurements.map(({ operation }) => operation))];
  return FIGURES.map((figure) =>
    summaryTable(
      figure,
      names.map((name) => [name, summarize(measurements, name, figure)]),
    ),
  ).join("\n\n");
}
