import { writeFileSync } from "node:fs";
import { Agent } from "node:http";
import { z } from "zod";
import { note } from "../command-line.ts";
import { DRIVE_PATH, type Drive } from "./drive.ts";
import { type Call, type HttpResponse, send } from "./load.ts";
import { type Clients, existing, newClients, nextCalls, type Operation, pageOf, sign } from "./operations.ts";
import { profile } from "./profile.ts";
import { compare, percentile, shown } from "./results.ts";
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
const PROFILED_CALLS = 20_000;

/** The calls whose own cost is measured, by the names they have in the figures. */
export const OWN_COST_OPERATIONS: Readonly<Record<string, Operation>> = {
  login: existing,
  signature: sign,
  page: pageOf(100),
};

/** What is measured in each round, in this order, each time beginning with the next one. The twin is the floor, too. */
export const OWN_COST_SIDES = ["serviceOwnCost", "floorOwnCost", "twinOwnCost"] as const satisfies readonly SideName[];
type Measured = (typeof OWN_COST_SIDES)[number];
/** Microseconds a call. */
type Round = Record<Measured, number>;

export type OwnCost = ReturnType<typeof summarize>;

const driven = z.object({ status: z.number(), body: z.string() });

/** Workers that are called by a driver in their own isolates (workers/own-cost-driver.ts). */
export class OwnCostBench {
  readonly #side: (name: SideName) => Side;
  readonly #clients: ReadonlyMap<Measured, Clients>;
  readonly #agent = new Agent({ keepAlive: true });

  private constructor(side: (name: SideName) => Side, clients: ReadonlyMap<Measured, Clients>) {
    this.#side = side;
    this.#clients = clients;
  }

  /** Gives each side an application. */
  static async prepare(side: (name: SideName) => Side): Promise<OwnCostBench> {
    const clients = new Map<Measured, Clients>();
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
    const all: { name: string; calls: number; measurements: Round[] }[] = [];
    for (const name of Object.keys(OWN_COST_OPERATIONS)) {
      all.push({ name, calls: await this.#warmUp(name), measurements: [] });
    }
    const startedAt = performance.now();
    for (let round = 0; round < ROUNDS && performance.now() - startedAt < LIMIT_SECONDS * 1000; round++) {
      if (round % 10 === 0) note(`round ${round + 1} of ${ROUNDS} …`);
      for (const { name, calls, measurements } of all) measurements.push(await this.#measureRound(name, calls, round));
    }
    const isCpuTime = this.#side("serviceOwnCost").cpuMilliseconds() !== null;
    return { operations: all.map(({ name, calls, measurements }) => summarize(name, calls, measurements)), isCpuTime };
  }

  /** Writes a profile of each side's Worker while it is called. */
  async profile(name: string): Promise<void> {
    await this.#warmUp(name);
    for (const side of ["serviceOwnCost", "floorOwnCost"] as const) {
      const file = `${side}-${name}.cpuprofile`;
      writeFileSync(file, await profile(this.#side(side), () => this.#drive(side, name, PROFILED_CALLS)));
      note(`wrote ${file}`);
    }
  }

  /** @returns how many calls one measurement has, on every side */
  async #warmUp(name: string): Promise<number> {
    for (const side of OWN_COST_SIDES) await this.#drive(side, name, WARMING_CALLS);
    const microseconds = await this.#microseconds("floorOwnCost", name, WARMING_CALLS);
    return Math.max(1, Math.round((MEASURED_MILLISECONDS * 1000) / microseconds));
  }

  /** Measurements follow directly on each other in a changing order, so that what disturbs one disturbs all. */
  async #measureRound(name: string, calls: number, round: number): Promise<Round> {
    const measured: Round = { serviceOwnCost: 0, floorOwnCost: 0, twinOwnCost: 0 };
    const first = round % OWN_COST_SIDES.length;
    for (const side of [...OWN_COST_SIDES.slice(first), ...OWN_COST_SIDES.slice(0, first)]) {
      measured[side] = await this.#microseconds(side, name, calls);
    }
    return measured;
  }

  /** @returns for one call */
  async #microseconds(measured: Measured, name: string, calls: number): Promise<number> {
    const side = this.#side(measured);
    const cpuBefore = side.cpuMilliseconds();
    const startedAt = performance.now();
    await this.#drive(measured, name, calls);
    const elapsed = performance.now() - startedAt;
    const cpuAfter = side.cpuMilliseconds();
    const milliseconds = cpuBefore === null || cpuAfter === null ? elapsed : cpuAfter - cpuBefore;
    return (milliseconds * 1000) / calls;
  }

  /** Lets a Worker be called `times` times, one call after the other, and checks the last response. */
  async #drive(side: Measured, name: string, times: number): Promise<void> {
    const operation = OWN_COST_OPERATIONS[name];
    const clients = this.#clients.get(side);
    if (!operation || !clients) throw new Error(`no operation is named ${name}`);
    const { needs } = operation;
    for (const { call, check } of needs ? nextCalls(needs.operation, clients, needs.missing(clients, 1)) : []) {
      await check(await this.#send(side, call));
    }
    for (const { call, check } of nextCalls(operation, clients, 1)) {
      const drive: Drive = { call: withLength(call), times };
      const order: Call = { method: "POST", path: DRIVE_PATH, headers: {}, body: JSON.stringify(drive) };
      const response = await this.#send(side, order);
      if (response.status !== 200) throw new Error(`${side}, ${name}: ${response.status} ${response.body}`);
      await check({ ...driven.parse(JSON.parse(response.body)), retryAfter: null });
    }
  }

  #send(side: Measured, call: Call): Promise<HttpResponse> {
    return send(this.#agent, this.#side(side).port, call);
  }
}

/** As a call comes over a connection: a body without its length would be read as a stream. */
function withLength(call: Call): Call {
  if (call.body === undefined) return call;
  return { ...call, headers: { ...call.headers, "content-length": String(Buffer.byteLength(call.body)) } };
}

/** CPU time for one call, in microseconds, and ratios of the rounds; `noise` is twin over floor. */
function summarize(name: string, callsAMeasurement: number, measurements: Round[]) {
  const all = (side: Measured) => measurements.map((round) => round[side]);
  const of = (side: Measured) => percentile(Float64Array.from(all(side)), LEAST_DISTURBED);
  const noise = compare(all("twinOwnCost"), all("floorOwnCost"));
  const [serviceMicroseconds, floorMicroseconds] = [of("serviceOwnCost"), of("floorOwnCost")];
  return {
    name,
    serviceMicroseconds,
    floorMicroseconds,
    twinMicroseconds: of("twinOwnCost"),
    ratio: serviceMicroseconds / floorMicroseconds,
    ofRounds: compare(all("serviceOwnCost"), all("floorOwnCost"), noise),
    noise,
    callsAMeasurement,
    measurements,
  };
}

/** A table of at most 80 columns, and what it says of the goal. */
export function ownCostTable(costs: readonly OwnCost[], isCpuTime: boolean): string {
  const row = (name: string, ...cells: [string, string, string, string, string]) =>
    name.padEnd(20) + cells.map((cell, place) => cell.padStart([8, 8, 6, 19, 19][place] ?? 0)).join("");
  const missed = costs.filter(({ ratio }) => ratio > GOAL).map(({ name }) => name);
  return [
    row("microseconds a call", "service", "floor", "", "service/floor", "floor/floor"),
    ...costs.map(({ name, serviceMicroseconds, floorMicroseconds, ratio, ofRounds, noise }) => {
      const [service, floor] = [serviceMicroseconds.toFixed(1), floorMicroseconds.toFixed(1)];
      return row(name, service, floor, ratio.toFixed(2), shown(ofRounds), shown(noise));
    }),
    "",
    "Of the rounds' ratios: median, its 95 % interval in brackets; =: a tie.",
    ...(isCpuTime ? [] : ["This system tells no CPU time of a process: these are elapsed times."]),
    `Goal ${missed.length === 0 ? "reached" : `missed by ${missed.join(", ")}`}: at most ${GOAL} times the floor's.`,
  ].join("\n");
}
