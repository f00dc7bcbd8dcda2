import type { OperationResult, SideResult, Spread } from "./results.ts";

const NAME_COLUMNS = 31;

/** What we want to reach; told beside the figures, asserted nowhere. */
export const GOALS = { ratio: 0.9, p99Ratio: 1.25, peerRatio: 1 } as const;

/** Two tables, at most 80 columns wide. */
export function tables(results: readonly OperationResult[]): string {
  const ratios = results.map(({ name, ratio, ratioSpread, p99Ratio, cpuRatio, peerRatio }) =>
    row(name, [
      [`${times(ratio)} ${range(ratioSpread)}`, 18],
      [times(p99Ratio), 8],
      [cpuRatio === null ? "-" : times(cpuRatio), 8],
      [peerRatio === null ? "-" : times(peerRatio), 14],
    ]),
  );
  const figures = results.map(({ name, service, floor, peer }) =>
    row(name, [
      [figure(service), 16],
      [figure(floor), 16],
      [peer ? figure(peer) : "-", 16],
    ]),
  );
  return [
    row("", [
      ["service/floor", 18],
      ["p99", 8],
      ["CPU", 8],
      ["service/peer", 14],
    ]),
    ...ratios,
    "",
    row("requests/s, p50/p99 ms", [
      ["service", 16],
      ["floor", 16],
      ["peer", 16],
    ]),
    ...figures,
  ].join("\n");
}

function row(name: string, cells: readonly (readonly [text: string, columns: number])[]): string {
  return [name.padEnd(NAME_COLUMNS), ...cells.map(([text, columns]) => text.padStart(columns))].join("").trimEnd();
}

const times = (ratio: number): string => ratio.toFixed(2);
const range = ([least, most]: Spread): string => `(${times(least)}-${times(most)})`;
const figure = ({ rps, p50Ms, p99Ms }: SideResult): string =>
  `${Math.round(rps)} ${Math.round(p50Ms)}/${Math.round(p99Ms)}`;

/** What the figures say of the goals, in sentences. */
export function verdict(results: readonly OperationResult[]): string {
  const below = results.filter(({ ratio }) => ratio < GOALS.ratio);
  const slow = results.filter(({ p99Ratio }) => p99Ratio > GOALS.p99Ratio);
  const behind = results.filter(
    ({ name, peerRatio }) => name.startsWith("new badge") && peerRatio !== null && peerRatio <= GOALS.peerRatio,
  );
  return [
    goal(`throughput at least ${GOALS.ratio.toFixed(2)} of the floor's`, below),
    goal(`p99 at most ${GOALS.p99Ratio.toFixed(2)} times the floor's`, slow),
    goal("more new badges than the peer", behind),
  ].join("\n");
}

function goal(wanted: string, missed: readonly OperationResult[]): string {
  if (missed.length === 0) return `Goal reached: ${wanted}.`;
  return `Goal missed:  ${wanted}: ${missed.map(({ name }) => name).join("; ")}.`;
}
