import type { OperationResult, Ratio, SideResult } from "./results.ts";

const NAME_COLUMNS = 31;
const RATIO_COLUMNS = 24;
const FIGURE_COLUMNS = 16;

/** What we want to reach; told beside the figures, asserted nowhere. */
export const GOALS = { throughput: 0.9, p99: 1.25, peerThroughput: 1 } as const;

/** Tables, at most 80 columns wide. */
export function tables(results: readonly OperationResult[]): string {
  const each = (cells: (result: OperationResult) => readonly Cell[]) =>
    results.map((result) => row(result.name, cells(result)));
  return [
    row("throughput", columns(RATIO_COLUMNS, "service/floor", "floor/floor")),
    ...each(({ throughput, noise }) => columns(RATIO_COLUMNS, shown(throughput), shown(noise.throughput))),
    "",
    row("p99", columns(RATIO_COLUMNS, "service/floor", "floor/floor")),
    ...each(({ p99, noise }) => columns(RATIO_COLUMNS, shown(p99), shown(noise.p99))),
    "",
    row("", columns(RATIO_COLUMNS, "throughput service/peer", "CPU service/floor")),
    ...each(({ peerThroughput, cpuRatio }) =>
      columns(RATIO_COLUMNS, shown(peerThroughput), cpuRatio === null ? "-" : times(cpuRatio)),
    ),
    "",
    row("requests/s, p50/p99 ms", columns(FIGURE_COLUMNS, "service", "floor", "peer")),
    ...each(({ service, floor, peer }) => columns(FIGURE_COLUMNS, figure(service), figure(floor), figure(peer))),
    "",
    "Ratios: median, its 95 % interval in brackets; =: a tie, not to be told from",
    "the floor measured against a second instance of itself.",
  ].join("\n");
}

type Cell = readonly [text: string, width: number];

const columns = (width: number, ...texts: readonly string[]): Cell[] => texts.map((text) => [text, width]);

function row(name: string, cells: readonly Cell[]): string {
  return [name.padEnd(NAME_COLUMNS), ...cells.map(([text, width]) => text.padStart(width))].join("").trimEnd();
}

const times = (ratio: number): string => ratio.toFixed(2);
const shown = ({ median, interval: [least, most], isTie }: Ratio): string =>
  `${isTie ? "= " : ""}${times(median)} (${times(least)}-${times(most)})`;
const figure = ({ rps, p50Ms, p99Ms }: SideResult): string =>
  `${Math.round(rps)} ${Math.round(p50Ms)}/${Math.round(p99Ms)}`;

/** The smallest and the largest of fewer rounds are no 95 % interval of the median. */
const LEAST_ROUNDS = 6;

/** What the figures say of the goals, in sentences. */
export function verdict(results: readonly OperationResult[]): string {
  if (results.some(({ throughput }) => throughput.rounds < LEAST_ROUNDS)) {
    return `Goals: fewer than ${LEAST_ROUNDS} rounds say nothing; run it without --quick, on a quiet machine.`;
  }
  const newBadges = results.filter(({ name }) => name.startsWith("new badge"));
  return [
    goal(`throughput at least ${GOALS.throughput.toFixed(2)} of the floor's`, results, ({ throughput }) =>
      isAtLeast(throughput, GOALS.throughput),
    ),
    goal(`p99 at most ${GOALS.p99.toFixed(2)} times the floor's`, results, ({ p99 }) => isAtMost(p99, GOALS.p99)),
    goal("more new badges than the peer", newBadges, ({ peerThroughput }) =>
      peerThroughput.isTie ? "not shown" : isAtLeast(peerThroughput, GOALS.peerThroughput),
    ),
  ].join("\n");
}

/** `not shown`: the goal lies within the interval, so another run may say otherwise. */
type Outcome = "reached" | "missed" | "not shown";

function isAtLeast({ interval: [least, most] }: Ratio, wanted: number): Outcome {
  return least >= wanted ? "reached" : most < wanted ? "missed" : "not shown";
}

function isAtMost({ interval: [least, most] }: Ratio, wanted: number): Outcome {
  return most <= wanted ? "reached" : least > wanted ? "missed" : "not shown";
}

function goal(
  wanted: string,
  results: readonly OperationResult[],
  outcome: (result: OperationResult) => Outcome,
): string {
  const names = (which: Outcome) => results.filter((result) => outcome(result) === which).map(({ name }) => name);
  const [missed, unknown] = [names("missed"), names("not shown")];
  if (missed.length === 0 && unknown.length === 0) return `Goal reached: ${wanted}.`;
  const parts = [
    ...(missed.length > 0 ? [`missed by ${missed.join("; ")}`] : []),
    ...(unknown.length > 0 ? [`too noisy to tell for ${unknown.join("; ")}`] : []),
  ];
  return `Goal not shown on all: ${wanted}: ${parts.join(", ")}.`;
}
