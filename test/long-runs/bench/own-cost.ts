import { type Drivers, drive, OWN_COST_OPERATIONS, type Subject } from "./own-cost-drivers.ts";
import { profile } from "./profile.ts";
import { type Interval, percentile } from "./statistics.ts";

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

/** CPU time for one call, in microseconds. */
export interface OwnCost {
  name: string;
  serviceMicroseconds: number;
  floorMicroseconds: number;
  /** The floor, run a second time in another process. */
  twinMicroseconds: number;
  /** The service, with its log line written. */
  loggingMicroseconds: number;
  /** Of making the request and reading the response of a handler that does nothing; contained in the others. */
  driverMicroseconds: number;
  /** Service over floor, and the smallest and largest of the run's parts. */
  ratio: number;
  ratioSpread: Interval;
  /** Twin over floor, alike: 1 but for noise. */
  noise: number;
  noiseSpread: Interval;
  callsAMeasurement: number;
  /** Every single measurement. */
  measurements: Round[];
}

/** What is measured in each round, in this order, beginning each time with the next one. */
const MEASURED = ["service", "floor", "twin", "logging", "driver"] as const;
type Measured = (typeof MEASURED)[number];
/** Microseconds a call. */
type Round = Record<Measured, number>;

const SUBJECTS: Record<Measured, { side: keyof Drivers; subject: Subject }> = {
  service: { side: "service", subject: { subject: "worker", logs: false } },
  floor: { side: "floor", subject: { subject: "worker", logs: false } },
  twin: { side: "twin", subject: { subject: "worker", logs: false } },
  logging: { side: "service", subject: { subject: "worker", logs: true } },
  driver: { side: "floor", subject: { subject: "nothing", logs: false } },
};

/**
 * Measures what a call costs in the Worker's own isolate, platform calls memoised.
 *
 * @returns with whether the figures are CPU time; where the system tells none they are elapsed time
 */
export async function measureOwnCost(
  drivers: Drivers,
  note: (line: string) => void,
): Promise<{ operations: OwnCost[]; isCpuTime: boolean }> {
  const names = Object.keys(OWN_COST_OPERATIONS);
  const calls = new Map<string, number>();
  for (const name of names) calls.set(name, await warmUp(drivers, name));
  const rounds = new Map<string, Round[]>(names.map((name) => [name, []]));
  const startedAt = performance.now();
  for (let round = 0; round < ROUNDS && performance.now() - startedAt < LIMIT_SECONDS * 1000; round++) {
    if (round % 10 === 0) note(`round ${round + 1} of ${ROUNDS} …`);
    for (const [name, count] of calls) rounds.get(name)?.push(await measureRound(drivers, name, count, round));
  }
  const operations = [...rounds].map(([name, measured]) => summarize(name, calls.get(name) ?? 0, measured));
  return { operations, isCpuTime: drivers.service.side.cpuMilliseconds() !== null };
}

/** Records a profile of each side's Worker while it is called. @returns the profiles by side */
export async function profileOwnCost({ service, floor, twin }: Drivers, name: string): Promise<Map<string, string>> {
  await warmUp({ service, floor, twin }, name);
  const profiles = new Map<string, string>();
  for (const [side, driver] of Object.entries({ service, floor })) {
    const work = () => drive(driver, name, PROFILED_CALLS, SUBJECTS.service.subject);
    profiles.set(side, await profile(driver.side, work));
  }
  return profiles;
}

/** @returns how many calls one measurement has, on every side */
async function warmUp(drivers: Drivers, name: string): Promise<number> {
  for (const each of MEASURED) await measure(drivers, each, name, WARMING_CALLS);
  const microseconds = await measure(drivers, "floor", name, WARMING_CALLS);
  return Math.max(1, Math.round((MEASURED_MILLISECONDS * 1000) / microseconds));
}

/** What is measured follows directly on each other and changes its order, so that what disturbs one disturbs all. */
async function measureRound(drivers: Drivers, name: string, calls: number, round: number): Promise<Round> {
  const measured: Round = { service: 0, floor: 0, twin: 0, logging: 0, driver: 0 };
  for (let place = 0; place < MEASURED.length; place++) {
    const each = MEASURED[(place + round) % MEASURED.length] ?? "floor";
    measured[each] = await measure(drivers, each, name, calls);
  }
  return measured;
}

/** @returns microseconds a call */
async function measure(drivers: Drivers, measured: Measured, name: string, calls: number): Promise<number> {
  const { side, subject } = SUBJECTS[measured];
  const driver = drivers[side];
  const cpuBefore = driver.side.cpuMilliseconds();
  const startedAt = performance.now();
  await drive(driver, name, calls, subject);
  const elapsed = performance.now() - startedAt;
  const cpuAfter = driver.side.cpuMilliseconds();
  const milliseconds = cpuBefore === null || cpuAfter === null ? elapsed : cpuAfter - cpuBefore;
  return (milliseconds * 1000) / calls;
}

function summarize(name: string, callsAMeasurement: number, measurements: Round[]): OwnCost {
  const of = (what: Measured, rounds: readonly Round[] = measurements) =>
    percentile(
      Float64Array.from(rounds, (round) => round[what]),
      LEAST_DISTURBED,
    );
  const toFloor = (what: Measured, rounds?: readonly Round[]) => of(what, rounds) / of("floor", rounds);
  const spread = (what: Measured): Interval => {
    const ratios = splitIntoParts(measurements).map((part) => toFloor(what, part));
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

function splitIntoParts<T>(items: readonly T[]): T[][] {
  const size = Math.max(1, Math.ceil(items.length / PARTS));
  return Array.from({ length: Math.ceil(items.length / size) }, (_, part) =>
    items.slice(part * size, (part + 1) * size),
  );
}
