import { OPERATIONS } from "./operations.ts";
import type { Measurement } from "./rounds.ts";
import type { SideName } from "./sides.ts";

/** The middle of some values; of an even number the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** @param share from 0 to 1: the value that this share of the values does not exceed (nearest rank) */
export function percentile(values: Float64Array, share: number): number {
  return values.toSorted()[Math.max(0, Math.ceil(share * values.length) - 1)] ?? Number.NaN;
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
  const ratios = ours.map((own, round) => own / (theirs[round] ?? Number.NaN)).sort((one, other) => one - other);
  const { length } = ratios;
  const at = (place: number) => ratios[place] ?? Number.NaN;
  const below = Math.max(0, Math.floor(length / 2 - (1.96 * Math.sqrt(length)) / 2));
  const interval: Interval = [at(below), at(length - 1 - below)];
  const [least, most] = noise?.interval ?? [1, 1];
  const isTie = interval[0] <= most && least <= interval[1];
  return { median: median(ratios), interval, spread: [at(0), at(length - 1)], rounds: length, isTie };
}

export type OperationResult = ReturnType<typeof summarizeOperation>;

export const summarize = (measurements: readonly Measurement[]): OperationResult[] =>
  OPERATIONS.map(({ name }) => {
    const ofOperation = measurements.filter(({ operation }) => operation === name);
    return summarizeOperation(name, (side) => ofOperation.filter((measurement) => measurement.side === side));
  });

function summarizeOperation(name: string, roundsOf: (side: SideName) => readonly Measurement[]) {
  type Figure = "rps" | "p50Ms" | "p99Ms" | "cpuMs";
  const all = (side: SideName, figure: Figure) => roundsOf(side).map((round) => round[figure] ?? Number.NaN);
  const medians = (side: SideName) => {
    const of = (figure: Figure) => median(all(side, figure));
    return { rps: of("rps"), p50Ms: of("p50Ms"), p99Ms: of("p99Ms"), cpuMs: of("cpuMs") };
  };
  // An operation that only the service knows has no rounds of the others.
  const ratio = (one: SideName, other: SideName, figure: Figure, noise?: Ratio) =>
    compare(all(other, figure).length === 0 ? [] : all(one, figure), all(other, figure), noise);
  // What the floor's second instance differs from its first is noise.
  const noise = { throughput: ratio("twin", "floor", "rps"), p99: ratio("twin", "floor", "p99Ms") };
  const [service, floor] = [medians("service"), medians("floor")];
  return {
    name,
    service,
    floor,
    peer: medians("peer"),
    noise,
    throughput: ratio("service", "floor", "rps", noise.throughput),
    p99: ratio("service", "floor", "p99Ms", noise.p99),
    peerThroughput: ratio("service", "peer", "rps", noise.throughput),
    /** CPU time hardly changes when others use the machine. */
    cpuRatio: service.cpuMs / floor.cpuMs,
  };
}

/** Those that other sides serve, too. */
const compared = (results: readonly OperationResult[]) => results.filter(({ throughput }) => throughput.rounds > 0);

export const shown = ({ median, interval, isTie }: Ratio): string =>
  `${isTie ? "= " : ""}${median.toFixed(2)} (${interval.map((bound) => bound.toFixed(2)).join("-")})`;

/** Tables, at most 80 columns wide. */
export function tables(all: readonly OperationResult[]): string {
  const results = compared(all);
  const table = <Row extends { name: string }>(
    width: number,
    [title, ...columns]: readonly string[],
    rows: readonly Row[],
    cells: (row: Row) => string[],
  ) => {
    const line = (name = "", texts: string[]) =>
      name.padEnd(31) +
      texts
        .map((text) => text.padStart(width))
        .join("")
        .trimEnd();
    return [line(title, columns), ...rows.map((row) => line(row.name, cells(row))), ""];
  };
  const figure = ({ rps, p50Ms, p99Ms }: OperationResult["service"]) =>
    Number.isNaN(rps) ? "-" : `${Math.round(rps)} ${Math.round(p50Ms)}/${Math.round(p99Ms)}`;
  return [
    ...table(24, ["throughput", "service/floor", "floor/floor"], results, ({ throughput, noise }) => [
      ...[throughput, noise.throughput].map(shown),
    ]),
    ...table(24, ["p99", "service/floor", "floor/floor"], results, ({ p99, noise }) => [p99, noise.p99].map(shown)),
    ...table(24, ["", "throughput service/peer", "CPU service/floor"], results, ({ peerThroughput, cpuRatio }) => [
      ...[shown(peerThroughput), cpuRatio.toFixed(2)],
    ]),
    ...table(16, ["requests/s, p50/p99 ms", "service", "floor", "peer"], all, ({ service, floor, peer }) =>
      [service, floor, peer].map(figure),
    ),
    "Ratios: median, its 95 % interval in brackets; =: a tie, not to be told from",
    "the floor measured against a second instance of itself.",
  ].join("\n");
}
