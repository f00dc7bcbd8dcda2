import { Agent } from "node:http";
import { z } from "zod";
import { note } from "../command-line.ts";
import { DRIVE_PATH, type Drive } from "./drive.ts";
import { type Call, type HttpResponse, send } from "./load-thread.ts";
import { type Clients, existing, newClients, type Operation, pageOf, sign } from "./operations.ts";
import { profile } from "./profile.ts";
import { type Interval, median, percentile } from "./results.ts";
import type { Side, SideName } from "./sides.ts";

/** What we want to reach. */
const GOAL = 1.5;
const ROUNDS = 150;
/** No further round is begun after this. */
const LIMIT_SECONDS = 75;
/** Calls of each kind before anything is measured: the runtime's compiler has seen them often enough by then. */
const WARMING_CALLS = 3000;
/** About how long the floor takes for one measurement; every other side gets as many calls. */
const MEASURED_MILLISECONDS = 10;
/**
 * What else runs on the machine adds to a measurement and never takes from it (caches, a hypervisor's share), so of many
 * short ones the fifth that was disturbed least is taken.
 */
const LEAST_DISTURBED = 0.2;
/** A run is looked at in so many parts, to show how far its figures can be trusted. */
const PARTS = 5;
const PROFILED_CALLS = 20_000;

/** The calls whose own cost is measured, by the names they have in the figures. */
export const OWN_COST_OPERATIONS: Readonly<Record<string, Operation>> = {
  login: existing,
  signature: sign,
  page: pageOf(100),
};

export const OWN_COST_SIDES = ["serviceOwnCost", "floorOwnCost", "twinOwnCost"] as const satisfies readonly SideName[];

/** What is measured in each round, in this order, each time beginning with the next one. */
const MEASURED = ["service", "floor", "twin", "logging", "driver"] as const;
type Measured = (typeof MEASURED)[number];
/** Microseconds a call. */
type Round = Record<Measured, number>;

const SUBJECTS: Record<Measured, { side: (typeof OWN_COST_SIDES)[number] } & Pick<Drive, "subject" | "logs">> = {
  service: { side: "serviceOwnCost", subject: "worker", logs: false },
  floor: { side: "floorOwnCost", subject: "worker", logs: false },
  /** The floor in another process: what it differs from the floor is noise. */
  twin: { side: "twinOwnCost", subject: "worker", logs: false },
  /** The service, with its log line written. */
  logging: { side: "serviceOwnCost", subject: "worker", logs: true },
  /** Making the request and reading the response of a handler that does nothing; contained in the others. */
  driver: { side: "floorOwnCost", subject: "nothing", logs: false },
};

export type OwnCost = ReturnType<typeof summarize>;

const driven = z.object({ status: z.number(), body: z.string() });

/** Workers that are called by a driver in their own isolates (workers/own-cost-driver.ts). */
export class OwnCostBench {
  readonly #side: (name: SideName) => Side;
  readonly #clients: ReadonlyMap<SideName, Clients>;
  readonly #agent = new Agent({ keepAlive: true });

  private constructor(side: (name: SideName) => Side, clients: ReadonlyMap<SideName, Clients>) {
    this.#side = side;
    this.#clients = clients;
  }

  /** Gives each side an application. */
  static async prepare(side: (name: SideName) => Side): Promise<OwnCostBench> {
    const clients = new Map<SideName, Clients>();
    for (const name of OWN_COST_SIDES) {
      const withWebhook = [await side(name).makeApplication(null)];
      clients.set(name, newClients({ withWebhook, withoutWebhook: [] }));
    }
    return new OwnCostBench(side, clients);
  }

  /**
   * Measures what a call costs in the Worker's own isolate, platform calls memoised.
   *
   * @returns with whether the figures are CPU time; where the system tells none they are elapsed time
   */
  async measure(): Promise<{ operations: OwnCost[]; isCpuTime: boolean }> {
    const calls = new Map<string, number>();
    for (const name of Object.keys(OWN_COST_OPERATIONS)) calls.set(name, await this.#warmUp(name));
    const rounds = new Map<string, Round[]>([...calls.keys()].map((name) => [name, []]));
    const startedAt = performance.now();
    for (let round = 0; round < ROUNDS && performance.now() - startedAt < LIMIT_SECONDS * 1000; round++) {
      if (round % 10 === 0) note(`round ${round + 1} of ${ROUNDS} …`);
      for (const [name, count] of calls) rounds.get(name)?.push(await this.#measureRound(name, count, round));
    }
    const operations = [...rounds].map(([name, measured]) => summarize(name, calls.get(name) ?? 0, measured));
    return { operations, isCpuTime: this.#side("serviceOwnCost").cpuMilliseconds() !== null };
  }

  /** Records a profile of each side's Worker while it is called. @returns the profiles by side */
  async profile(name: string): Promise<Map<string, string>> {
    await this.#warmUp(name);
    const profiles = new Map<string, string>();
    for (const subject of ["service", "floor"] as const) {
      const work = () => this.#drive(subject, name, PROFILED_CALLS);
      profiles.set(subject, await profile(this.#side(SUBJECTS[subject].side), work));
    }
    return profiles;
  }

  /** @returns how many calls one measurement has, on every side */
  async #warmUp(name: string): Promise<number> {
    for (const each of MEASURED) await this.#drive(each, name, WARMING_CALLS);
    const microseconds = await this.#microseconds("floor", name, WARMING_CALLS);
    return Math.max(1, Math.round((MEASURED_MILLISECONDS * 1000) / microseconds));
  }

  /** Measurements follow directly on each other in a changing order, so that what disturbs one disturbs all. */
  async #measureRound(name: string, calls: number, round: number): Promise<Round> {
    const measured: Round = { service: 0, floor: 0, twin: 0, logging: 0, driver: 0 };
    for (let place = 0; place < MEASURED.length; place++) {
      const each = MEASURED[(place + round) % MEASURED.length] ?? "floor";
      measured[each] = await this.#microseconds(each, name, calls);
    }
    return measured;
  }

  /** @returns for one call */
  async #microseconds(measured: Measured, name: string, calls: number): Promise<number> {
    const side = this.#side(SUBJECTS[measured].side);
    const cpuBefore = side.cpuMilliseconds();
    const startedAt = performance.now();
    await this.#drive(measured, name, calls);
    const elapsed = performance.now() - startedAt;
    const cpuAfter = side.cpuMilliseconds();
    const milliseconds = cpuBefore === null || cpuAfter === null ? elapsed : cpuAfter - cpuBefore;
    return (milliseconds * 1000) / calls;
  }

  /** Lets a Worker be called `times` times, one call after the other, and checks the last response. */
  async #drive(measured: Measured, name: string, times: number): Promise<void> {
    const { side, subject, logs } = SUBJECTS[measured];
    const operation = OWN_COST_OPERATIONS[name];
    const clients = this.#clients.get(side);
    if (!operation || !clients) throw new Error(`no operation is named ${name}`);
    const { needs } = operation;
    if (needs && needs.missing(clients, 1) > 0) {
      for (const { call, check } of needs.operation.next(clients, 1)) await check(await this.#send(side, call));
    }
    const [expected] = operation.next(clients, 1);
    if (!expected) throw new Error(`${name} has no call`);
    const drive: Drive = { call: withLength(expected.call), times, subject, logs };
    const order: Call = { method: "POST", path: DRIVE_PATH, headers: {}, body: JSON.stringify(drive) };
    const response = await this.#send(side, order);
    if (response.status !== 200) throw new Error(`${side}, ${name}: ${response.status} ${response.body}`);
    if (subject === "worker") await expected.check({ ...driven.parse(JSON.parse(response.body)), retryAfter: null });
  }

  #send(side: SideName, call: Call): Promise<HttpResponse> {
    return send(this.#agent, this.#side(side).port, call);
  }
}

/** As a call comes over a connection: a body without its length would be read as a stream. */
function withLength(call: Call): Call {
  if (call.body === undefined) return call;
  return { ...call, headers: { ...call.headers, "content-length": String(Buffer.byteLength(call.body)) } };
}

/** CPU time for one call, in microseconds; `ratio` is service over floor, `noise` twin over floor. */
function summarize(name: string, callsAMeasurement: number, measurements: Round[]) {
  const of = (what: Measured, rounds = measurements) => {
    const values = Float64Array.from(rounds, (round) => round[what]);
    return percentile(values, LEAST_DISTURBED);
  };
  const toFloor = (what: Measured, rounds?: Round[]) => of(what, rounds) / of("floor", rounds);
  /** Smallest and largest of the run's parts. */
  const spread = (what: Measured): Interval => {
    const size = Math.max(1, Math.ceil(measurements.length / PARTS));
    const parts = Map.groupBy(measurements, (round) => Math.floor(measurements.indexOf(round) / size));
    const ratios = [...parts.values()].map((part) => toFloor(what, part));
    return [Math.min(...ratios), Math.max(...ratios)];
  };
  return {
    name,
    serviceMicroseconds: of("service"),
    floorMicroseconds: of("floor"),
    twinMicroseconds: of("twin"),
    loggingMicroseconds: of("logging"),
    driverMicroseconds: of("driver"),
    ratio: toFloor("service"),
    ratioSpread: spread("service"),
    noise: toFloor("twin"),
    noiseSpread: spread("twin"),
    callsAMeasurement,
    measurements,
  };
}

/** A table of at most 80 columns, and what it says of the goal. */
export function ownCostTable(costs: readonly OwnCost[], isCpuTime: boolean): string {
  const row = (name: string, service: string, floor: string, ratio: string, noise: string) =>
    name.padEnd(20) + service.padStart(10) + floor.padStart(10) + ratio.padStart(20) + noise.padStart(20);
  const shown = (ratio: number, [least, most]: Interval) =>
    `${ratio.toFixed(2)} (${least.toFixed(2)}-${most.toFixed(2)})`;
  const missed = costs.filter(({ ratio }) => ratio > GOAL).map(({ name }) => name);
  const driver = median(costs.map(({ driverMicroseconds }) => driverMicroseconds)).toFixed(1);
  const logging = costs.map(({ name, loggingMicroseconds }) => `${loggingMicroseconds.toFixed(1)} (${name})`);
  return [
    row("microseconds a call", "service", "floor", "service/floor", "floor/floor"),
    ...costs.map(({ name, serviceMicroseconds, floorMicroseconds, ratio, ratioSpread, noise, noiseSpread }) => {
      const [service, floor] = [serviceMicroseconds.toFixed(1), floorMicroseconds.toFixed(1)];
      return row(name, service, floor, shown(ratio, ratioSpread), shown(noise, noiseSpread));
    }),
    "",
    "In brackets: the smallest and the largest of the run's five parts.",
    `${driver} of each are the driver's: making the request and reading the response.`,
    `With its log line written the service takes ${logging.join(", ")}.`,
    ...(isCpuTime ? [] : ["This system tells no CPU time of a process: these are elapsed times."]),
    `Goal ${missed.length === 0 ? "reached" : `missed by ${missed.join(", ")}`}: at most ${GOAL} times the floor's.`,
  ].join("\n");
}
