import { OPERATIONS } from "./operations.ts";
import type { Measurement } from "./rounds.ts";
import type { SideName } from "./side.ts";
import { median } from "./statistics.ts";

/** Medians over the rounds. */
export interface SideResult {
  rps: number;
  p50Ms: number;
  p99Ms: number;
  /** CPU time of workerd for one call; null where the system does not tell. */
  cpuMs: number | null;
}

/** Smallest and largest of the rounds. */
export type Spread = [number, number];

export interface OperationResult {
  name: string;
  service: SideResult;
  floor: SideResult;
  peer: SideResult | null;
  /** Throughput of the service as a share of the floor's; 1 would be as fast. */
  ratio: number;
  ratioSpread: Spread;
  /** The service's p99 as a multiple of the floor's. */
  p99Ratio: number;
  p99RatioSpread: Spread;
  /** Throughput of the service as a multiple of the peer's, or null without a peer. */
  peerRatio: number | null;
  peerRatioSpread: Spread | null;
  /** CPU time of the service as a multiple of the floor's: what is left of `ratio` when others use the machine. */
  cpuRatio: number | null;
}

export function summarize(measurements: readonly Measurement[]): OperationResult[] {
  return OPERATIONS.map(({ name }) => {
    const of = (side: SideName) =>
      measurements.filter((measurement) => measurement.operation === name && measurement.side === side);
    return summarizeOperation(name, of("service"), of("floor"), of("peer"));
  });
}

function summarizeOperation(
  name: string,
  service: readonly Measurement[],
  floor: readonly Measurement[],
  peer: readonly Measurement[],
): OperationResult {
  const [ours, lowest, theirs] = [service, floor, peer].map((rounds) => medians(rounds));
  if (!ours || !lowest) throw new Error(`${name} was not measured`);
  const isPeered = theirs !== undefined && peer.length > 0;
  return {
    name,
    service: ours,
    floor: lowest,
    peer: isPeered ? theirs : null,
    ratio: ours.rps / lowest.rps,
    ratioSpread: spread(service, floor, ({ rps }) => rps),
    p99Ratio: ours.p99Ms / lowest.p99Ms,
    p99RatioSpread: spread(service, floor, ({ p99Ms }) => p99Ms),
    peerRatio: isPeered ? ours.rps / theirs.rps : null,
    peerRatioSpread: isPeered ? spread(service, peer, ({ rps }) => rps) : null,
    cpuRatio: ours.cpuMs === null || lowest.cpuMs === null ? null : ours.cpuMs / lowest.cpuMs,
  };
}

function medians(rounds: readonly Measurement[]): SideResult {
  const cpu = rounds.map(({ cpuMs }) => cpuMs).filter((value) => value !== null);
  return {
    rps: median(rounds.map(({ rps }) => rps)),
    p50Ms: median(rounds.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(rounds.map(({ p99Ms }) => p99Ms)),
    cpuMs: cpu.length === 0 ? null : median(cpu),
  };
}

/** Of the ratios of the single rounds. */
function spread(
  ours: readonly Measurement[],
  theirs: readonly Measurement[],
  value: (measurement: Measurement) => number,
): Spread {
  const ratios = ours.flatMap((own) => {
    const other = theirs.find(({ round }) => round === own.round);
    return other ? [value(own) / value(other)] : [];
  });
  return [Math.min(...ratios), Math.max(...ratios)];
}
