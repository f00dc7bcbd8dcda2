import { OPERATIONS } from "./operations.ts";
import type { Measurement } from "./rounds.ts";
import type { SideName } from "./side.ts";
import { type Interval, median, medianInterval } from "./statistics.ts";

/** Medians over the rounds. */
export interface SideResult {
  rps: number;
  p50Ms: number;
  p99Ms: number;
  /** CPU time of workerd for one call; null where the system does not tell. */
  cpuMs: number | null;
}

/** One side's figure as a multiple of another's. */
export interface Ratio {
  /** Median of the ratios of the single rounds. */
  median: number;
  /** Its 95 % confidence interval (statistics.ts). */
  interval: Interval;
  /** Smallest and largest of a single round. */
  spread: Interval;
  rounds: number;
  /** Whether the interval overlaps that of the floor against itself: then the two cannot be told apart. */
  isTie: boolean;
}

export interface OperationResult {
  name: string;
  service: SideResult;
  floor: SideResult;
  peer: SideResult;
  /** The floor's second instance over its first: what these differ from 1 is noise. */
  noise: { throughput: Ratio; p99: Ratio };
  /** Throughput of the service over the floor's; 1 would be as fast. */
  throughput: Ratio;
  /** The service's p99 over the floor's. */
  p99: Ratio;
  /** Throughput of the service over the peer's. */
  peerThroughput: Ratio;
  /** CPU time of the service over the floor's, which hardly changes when others use the machine. */
  cpuRatio: number | null;
}

export function summarize(measurements: readonly Measurement[]): OperationResult[] {
  return OPERATIONS.map(({ name }) => {
    const ofOperation = measurements.filter(({ operation }) => operation === name);
    const of = (side: SideName) => ofOperation.filter((measurement) => measurement.side === side);
    return summarizeOperation(name, { service: of("service"), floor: of("floor"), twin: of("twin"), peer: of("peer") });
  });
}

type Rounds = readonly Measurement[];

function summarizeOperation(
  name: string,
  { service, floor, twin, peer }: Record<"service" | "floor" | "twin" | "peer", Rounds>,
): OperationResult {
  const rps = ({ rps }: Measurement) => rps;
  const p99 = ({ p99Ms }: Measurement) => p99Ms;
  const noise = { throughput: compare(twin, floor, rps), p99: compare(twin, floor, p99) };
  const [ours, lowest] = [medians(service), medians(floor)];
  return {
    name,
    service: ours,
    floor: lowest,
    peer: medians(peer),
    noise,
    throughput: compare(service, floor, rps, noise.throughput),
    p99: compare(service, floor, p99, noise.p99),
    peerThroughput: compare(service, peer, rps, noise.throughput),
    cpuRatio: ours.cpuMs === null || lowest.cpuMs === null ? null : ours.cpuMs / lowest.cpuMs,
  };
}

function medians(rounds: Rounds): SideResult {
  const cpu = rounds.map(({ cpuMs }) => cpuMs).filter((value) => value !== null);
  return {
    rps: median(rounds.map(({ rps }) => rps)),
    p50Ms: median(rounds.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(rounds.map(({ p99Ms }) => p99Ms)),
    cpuMs: cpu.length === 0 ? null : median(cpu),
  };
}

/** Round by round, because what disturbs the machine disturbs both sides of a round. */
function compare(ours: Rounds, theirs: Rounds, value: (measurement: Measurement) => number, noise?: Ratio): Ratio {
  const ratios = ours.flatMap((own) => {
    const other = theirs.find(({ round }) => round === own.round);
    return other ? [value(own) / value(other)] : [];
  });
  const interval = medianInterval(ratios);
  return {
    median: median(ratios),
    interval,
    spread: [Math.min(...ratios), Math.max(...ratios)],
    rounds: ratios.length,
    isTie: overlap(interval, noise?.interval ?? [1, 1]),
  };
}

const overlap = ([least, most]: Interval, [otherLeast, otherMost]: Interval): boolean =>
  least <= otherMost && otherLeast <= most;
