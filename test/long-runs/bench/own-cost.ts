import { writeFileSync } from "node:fs";
import { Agent } from "node:http";
import { z } from "zod";
import { note } from "../command-line.ts";
import { DRIVE_PATH, type Drive } from "./drive.ts";
import { type Call, send } from "./load.ts";
import { existing, neededCalls, type Operation, pageOf, sign } from "./operations.ts";
import { profile } from "./profile.ts";
import { byRound, compare, LEGEND, percentile, shown, table } from "./results.ts";
import { type Contestant, inRounds, type Measurement } from "./rounds.ts";
import type { SideName } from "./sides.ts";

/** What we want to reach. */
const GOAL = 1.5;
const PLAN = { rounds: 150, limitSeconds: 75 };
/** Calls of each kind before anything is measured: the runtime's compiler has seen them often enough by then. */
const WARMING_CALLS = 3000;
/** About how long the floor takes for one measurement; every other side gets as many calls. */
const MEASURED_MICROSECONDS = 10_000;
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

const driven = z.object({ status: z.number(), body: z.string() });
const agent = new Agent({ keepAlive: true });

/** Of one measurement. */
interface OwnFigures {
  calls: number;
  /** CPU time of one call; elapsed time where CPU time cannot be told. */
  microseconds: number;
}

/** Measures what a call costs in the Worker's own isolate, platform calls memoised. */
export async function measureOwnCost(contestants: readonly Contestant[]): Promise<Measurement<OwnFigures>[]> {
  const rows = [];
  for (const operation of Object.keys(OWN_COST_OPERATIONS)) {
    let calls = WARMING_CALLS;
    const measure = (contestant: Contestant) => drive(contestant, operation, calls);
    for (const contestant of contestants) await measure(contestant);
    for (const contestant of contestants.filter(({ side }) => side.name === "floor")) {
      calls = Math.max(1, Math.round(MEASURED_MICROSECONDS / (await measure(contestant)).microseconds));
    }
    rows.push({ operation, contestants, measure });
  }
  return inRounds(PLAN, rows);
}

/** Writes a profile of each side's Worker while it is called. */
export async function profileOwnCost(contestants: readonly Contestant[], operation: string): Promise<void> {
  for (const contestant of contestants.filter(({ side }) => side.name !== "twin")) {
    await drive(contestant, operation, WARMING_CALLS);
    const file = `${contestant.side.name}-${operation}.cpuprofile`;
    writeFileSync(file, await profile(contestant.side, () => drive(contestant, operation, PROFILED_CALLS)));
    note(`wrote ${file}`);
  }
}

/** Lets a Worker be called `calls` times, one call after the other, and checks the last response. */
async function drive({ side, clients }: Contestant, name: string, calls: number): Promise<OwnFigures> {
  const operation = OWN_COST_OPERATIONS[name];
  if (!operation) throw new Error(`no operation is named ${name}`);
  for (const { call, check } of neededCalls(operation, clients, 1)) {
    await check(await send(agent, side.port, call));
  }
  const { call, check } = operation.next(clients);
  const order: Drive = { call: withLength(call), times: calls };
  const driving = { method: "POST", path: DRIVE_PATH, headers: {}, body: JSON.stringify(order) } as const;
  const [startedAt, cpuBefore] = [performance.now(), side.cpuMilliseconds()];
  const response = await send(agent, side.port, driving);
  const [elapsed, cpuAfter] = [performance.now() - startedAt, side.cpuMilliseconds()];
  if (response.status !== 200) throw new Error(`${side.name}, ${name}: ${response.status} ${response.body}`);
  await check({ ...driven.parse(JSON.parse(response.body)), retryAfter: null });
  const milliseconds = cpuBefore === null || cpuAfter === null ? elapsed : cpuAfter - cpuBefore;
  return { calls, microseconds: (milliseconds * 1000) / calls };
}

/** As a call comes over a connection: a body without its length would be read as a stream. */
function withLength(call: Call): Call {
  if (call.body === undefined) return call;
  return { ...call, headers: { ...call.headers, "content-length": String(Buffer.byteLength(call.body)) } };
}

/** Microseconds of each call, and the ratios of the rounds; `noise` is floor over floor. */
export const summarizeOwnCost = (measurements: readonly Measurement<OwnFigures>[]) =>
  Object.keys(OWN_COST_OPERATIONS).map((name) => {
    const all = (side: SideName) => byRound(measurements, name, side).map(({ microseconds }) => microseconds);
    const of = (side: SideName) => percentile(all(side), LEAST_DISTURBED);
    const [serviceMicroseconds, floorMicroseconds, twinMicroseconds] = [of("service"), of("floor"), of("twin")];
    const noise = compare(all("twin"), all("floor"));
    const ofRounds = compare(all("service"), all("floor"), noise);
    const ratio = serviceMicroseconds / floorMicroseconds;
    return { name, serviceMicroseconds, floorMicroseconds, twinMicroseconds, ratio, ofRounds, noise };
  });

/** A table, and what it says of the goal. */
export function ownCostTable(costs: ReturnType<typeof summarizeOwnCost>): string {
  const missed = costs.filter(({ ratio }) => ratio > GOAL).map(({ name }) => name);
  const rows = costs.map(({ name, serviceMicroseconds, floorMicroseconds, ratio, ofRounds, noise }) => ({
    "microseconds a call": name,
    service: serviceMicroseconds.toFixed(1),
    floor: floorMicroseconds.toFixed(1),
    "": ratio.toFixed(2),
    "service/floor": shown(ofRounds),
    "floor/floor": shown(noise),
  }));
  const goal = missed.length === 0 ? "reached" : `missed by ${missed.join(", ")}`;
  return `${table(rows)}\n\n${LEGEND}.\nGoal ${goal}: at most ${GOAL} times the floor's.`;
}
