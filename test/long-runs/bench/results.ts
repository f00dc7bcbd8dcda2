import { OPERATIONS } from "./operations.ts";
import type { LoadFigures, Measurement } from "./rounds.ts";
import type { SideName } from "./sides.ts";

const inOrder = (values: readonly number[]): number[] => values.toSorted((one, other) => one - other);

/** The middle of some values; of an even number the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = inOrder(values);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** @param share from 0 to 1: the value that this share of the values does not exceed (nearest rank) */
export function percentile(values: readonly number[], share: number): number {
  return inOrder(values)[Math.max(0, Math.ceil(share * values.length) - 1)] ?? Number.NaN;
}

/** Smallest and largest value that a figure may have. */
type Interval = [number, number];

/** One side's figure as a multiple of another's. */
export interface Ratio {
  /** Median of the ratios of the single rounds, and its 95 % confidence interval. */
  median: number;
  interval: Interval;
  /** Smallest and largest of a single round. */
  spread: Interval;
  rounds: number;
  /** Whether the interval overlaps that of the floor against itself: then the two cannot be told apart. */
  isTie: boolean;
}

/**
 * Round by round, because what disturbs the machine disturbs both sides of a round. The 95 % confidence interval of their
 * median makes no assumption about the distribution: it is two of the ratios, chosen by their ranks (normal approximation
 * of the binomial distribution). Of fewer than eight it is all of them.
 *
 * @param ours a figure of each round, as many as `theirs`
 */
export function compare(ours: readonly number[], theirs: readonly number[], noise?: Ratio): Ratio {
  const ratios = inOrder(ours.map((own, round) => own / (theirs[round] ?? Number.NaN)));
  const { length } = ratios;
  const at = (place: number) => ratios[place] ?? Number.NaN;
  const below = Math.max(0, Math.floor(length / 2 - (1.96 * Math.sqrt(length)) / 2));
  const interval: Interval = [at(below), at(length - 1 - below)];
  const [least, most] = noise?.interval ?? [1, 1];
  const isTie = interval[0] <= most && least <= interval[1];
  return { median: median(ratios), interval, spread: [at(0), at(length - 1)], rounds: length, isTie };
}

/** Measurements of one operation on one side; none where the side does not serve it. */
export const byRound = <Figures>(all: readonly Measurement<Figures>[], operation: string, side: SideName) =>
  all.filter((measurement) => measurement.operation === operation && measurement.side === side);

type OperationResult = ReturnType<typeof summarize>[number];

export const summarize = (measurements: readonly Measurement<LoadFigures>[]) =>
  OPERATIONS.map(({ name, isServiceOnly = false }) => {
    type Figure = "rps" | "p50Ms" | "p99Ms" | "cpuMs";
    const all = (side: SideName, figure: Figure) =>
      byRound(measurements, name, side).map((round) => round[figure] ?? Number.NaN);
    const medians = (side: SideName) => {
      const of = (figure: Figure) => median(all(side, figure));
      return { rps: of("rps"), p50Ms: of("p50Ms"), p99Ms: of("p99Ms"), cpuMs: of("cpuMs") };
    };
    const ratio = (one: SideName, other: SideName, figure: Figure, noise?: Ratio) =>
      compare(isServiceOnly ? [] : all(one, figure), all(other, figure), noise);
    // What the floor's second instance differs from its first is noise.
    const noise = { throughput: ratio("twin", "floor", "rps"), p99: ratio("twin", "floor", "p99Ms") };
    const [service, floor, peer] = [medians("service"), medians("floor"), medians("peer")];
    return {
      ...{ name, service, floor, peer, noise },
      throughput: ratio("service", "floor", "rps", noise.throughput),
      p99: ratio("service", "floor", "p99Ms", noise.p99),
      peerThroughput: ratio("service", "peer", "rps", noise.throughput),
      /** CPU time hardly changes when others use the machine. */
      cpuRatio: service.cpuMs / floor.cpuMs,
    };
  });

export const LEGEND = "Ratios of the rounds: median, its 95 % interval in brackets; =: a tie";

export const shown = ({ median, interval, isTie }: Ratio): string =>
  `${isTie ? "= " : ""}${median.toFixed(2)} (${interval.map((bound) => bound.toFixed(2)).join("-")})`;

/** Rows with the same columns as lines: the first column to the left, the others to the right. */
export function table(rows: readonly Record<string, string>[]): string {
  const lines = [Object.keys(rows[0] ?? {}), ...rows.map((row) => Object.values(row))];
  const width = (column: number) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0));
  const line = (cells: string[]) =>
    cells.map((cell, column) => (column === 0 ? cell.padEnd(width(0)) : cell.padStart(width(column)))).join("  ");
  return lines.map(line).join("\n");
}

export function tables(all: readonly OperationResult[]): string {
  const compared = all.filter(({ throughput }) => throughput.rounds > 0);
  const figure = ({ rps, p50Ms, p99Ms }: OperationResult["service"]) =>
    Number.isNaN(rps) ? "-" : `${Math.round(rps)} ${Math.round(p50Ms)}/${Math.round(p99Ms)}`;
  return [
    table(
      compared.map(({ name, throughput, noise, peerThroughput }) => ({
        throughput: name,
        "service/floor": shown(throughput),
        "floor/floor": shown(noise.throughput),
        "service/peer": shown(peerThroughput),
      })),
    ),
    table(
      compared.map(({ name, p99, noise, cpuRatio }) => ({
        p99: name,
        "service/floor": shown(p99),
        "floor/floor": shown(noise.p99),
        "CPU service/floor": cpuRatio.toFixed(2),
      })),
    ),
    table(
      all.map(({ name, service, floor, peer }) => ({
        "requests/s, p50/p99 ms": name,
        service: figure(service),
        floor: figure(floor),
        peer: figure(peer),
      })),
    ),
    `${LEGEND}, not to be told from\nthe floor measured against a second instance of itself.`,
  ].join("\n\n");
}
