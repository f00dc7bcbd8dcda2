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
  const sorted = values.toSorted();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Smallest and largest value that a figure may have. */
export type Interval = [number, number];

/**
 * The 95 % confidence interval of a median, without any assumption about the distribution: two of the values, chosen by
 * their ranks (normal approximation of the binomial distribution). Of fewer than eight values it is all of them.
 */
function medianInterval(values: readonly number[]): Interval {
  const sorted = values.toSorted((one, other) => one - other);
  const { length } = sorted;
  const below = Math.max(0, Math.floor(length / 2 - (1.96 * Math.sqrt(length)) / 2));
  return [sorted[below] ?? Number.NaN, sorted[length - 1 - below] ?? Number.NaN];
}

/** One side's figure as a multiple of another's. */
interface Ratio {
  /** Median of the ratios of the single rounds, and its 95 % confidence interval. */
  median: number;
  interval: Interval;
  /** Smallest and largest of a single round. */
  spread: Interval;
  rounds: number;
  /** Whether the interval overlaps that of the floor against itself: then the two cannot be told apart. */
  isTie: boolean;
}

export type OperationResult = ReturnType<typeof summarizeOperation>;

export const summarize = (measurements: readonly Measurement[]): OperationResult[] =>
  OPERATIONS.map(({ name }) => {
    const ofOperation = measurements.filter(({ operation }) => operation === name);
    return summarizeOperation(name, (side) => ofOperation.filter((measurement) => measurement.side === side));
  });

type Rounds = readonly Measurement[];

function summarizeOperation(name: string, roundsOf: (side: SideName) => Rounds) {
  const [service, floor, twin, peer] = [roundsOf("service"), roundsOf("floor"), roundsOf("twin"), roundsOf("peer")];
  const rps = ({ rps }: Measurement) => rps;
  const p99 = ({ p99Ms }: Measurement) => p99Ms;
  // What the floor's second instance differs from its first is noise.
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
    /** CPU time hardly changes when others use the machine. */
    cpuRatio: ours.cpuMs === null || lowest.cpuMs === null ? null : ours.cpuMs / lowest.cpuMs,
  };
}

/** Medians over the rounds. */
function medians(rounds: Rounds) {
  const of = (figure: "rps" | "p50Ms" | "p99Ms" | "cpuMs") =>
    median(rounds.map((round) => round[figure]).filter((value) => value !== null));
  const hasCpu = rounds.some(({ cpuMs }) => cpuMs !== null);
  return { rps: of("rps"), p50Ms: of("p50Ms"), p99Ms: of("p99Ms"), cpuMs: hasCpu ? of("cpuMs") : null };
}

/** Round by round, because what disturbs the machine disturbs both sides of a round. */
function compare(ours: Rounds, theirs: Rounds, value: (measurement: Measurement) => number, noise?: Ratio): Ratio {
  const ratios = ours.flatMap((own) => {
    const other = theirs.find(({ round }) => round === own.round);
    return other ? [value(own) / value(other)] : [];
  });
  const interval = medianInterval(ratios);
  const [least, most] = noise?.interval ?? [1, 1];
  return {
    median: median(ratios),
    interval,
    spread: [Math.min(...ratios), Math.max(...ratios)],
    rounds: ratios.length,
    isTie: interval[0] <= most && least <= interval[1],
  };
}

/** What we want to reach; told beside the figures, asserted nowhere. */
const GOALS = { throughput: 0.9, p99: 1.25, peerThroughput: 1 } as const;

/** Those that other sides serve, too. */
export const compared = (results: readonly OperationResult[]) =>
  results.filter(({ throughput }) => throughput.rounds > 0);

/** Tables, at most 80 columns wide. */
export function tables(all: readonly OperationResult[]): string {
  const results = compared(all);
  const row = (width: number, name: string, ...cells: string[]) =>
    [name.padEnd(31), ...cells.map((text) => text.padStart(width))].join("").trimEnd();
  const times = (ratio: number) => ratio.toFixed(2);
  const shown = ({ median, interval: [least, most], isTie }: Ratio) =>
    `${isTie ? "= " : ""}${times(median)} (${times(least)}-${times(most)})`;
  const figure = ({ rps, p50Ms, p99Ms }: ReturnType<typeof medians>) =>
    Number.isNaN(rps) ? "-" : `${Math.round(rps)} ${Math.round(p50Ms)}/${Math.round(p99Ms)}`;
  return [
    row(24, "throughput", "service/floor", "floor/floor"),
    ...results.map(({ name, throughput, noise }) => row(24, name, shown(throughput), shown(noise.throughput))),
    "",
    row(24, "p99", "service/floor", "floor/floor"),
    ...results.map(({ name, p99, noise }) => row(24, name, shown(p99), shown(noise.p99))),
    "",
    row(24, "", "throughput service/peer", "CPU service/floor"),
    ...results.map(({ name, peerThroughput, cpuRatio }) =>
      row(24, name, shown(peerThroughput), cpuRatio === null ? "-" : times(cpuRatio)),
    ),
    "",
    row(16, "requests/s, p50/p99 ms", "service", "floor", "peer"),
    ...all.map(({ name, service, floor, peer }) => row(16, name, figure(service), figure(floor), figure(peer))),
    "",
    "Ratios: median, its 95 % interval in brackets; =: a tie, not to be told from",
    "the floor measured against a second instance of itself.",
  ].join("\n");
}

/** The smallest and the largest of fewer rounds are no 95 % interval of the median. */
const LEAST_ROUNDS = 6;

/** What the figures say of the goals, in sentences. */
export function verdict(all: readonly OperationResult[]): string {
  const results = compared(all);
  if (results.some(({ throughput }) => throughput.rounds < LEAST_ROUNDS)) {
    return `Goals: fewer than ${LEAST_ROUNDS} rounds say nothing; run it without --quick, on a quiet machine.`;
  }
  // A goal that lies within the interval is neither reached nor missed: another run may say otherwise.
  const atLeast = ({ interval: [least, most] }: Ratio, wanted: number) =>
    least >= wanted ? "reached" : most < wanted ? "missed" : "not shown";
  const atMost = ({ interval: [least, most] }: Ratio, wanted: number) =>
    most <= wanted ? "reached" : least > wanted ? "missed" : "not shown";
  const goal = (wanted: string, outcomes: readonly (readonly [name: string, outcome: string])[]) => {
    const names = (which: string) => outcomes.filter(([, outcome]) => outcome === which).map(([name]) => name);
    const [missed, unknown] = [names("missed").join("; "), names("not shown").join("; ")];
    if (missed === "" && unknown === "") return `Goal reached: ${wanted}.`;
    return `Goal not shown on all: ${wanted}. Missed by: ${missed || "none"}. Too noisy to tell: ${unknown || "none"}.`;
  };
  return [
    goal(
      `throughput at least ${GOALS.throughput.toFixed(2)} of the floor's`,
      results.map(({ name, throughput }) => [name, atLeast(throughput, GOALS.throughput)]),
    ),
    goal(
      `p99 at most ${GOALS.p99.toFixed(2)} times the floor's`,
      results.map(({ name, p99 }) => [name, atMost(p99, GOALS.p99)]),
    ),
    goal(
      "more new badges than the peer",
      results
        .filter(({ name }) => name.startsWith("new badge"))
        .map(({ name, peerThroughput: ratio }) => [
          name,
          ratio.isTie ? "not shown" : atLeast(ratio, GOALS.peerThroughput),
        ]),
    ),
  ].join("\n");
}
