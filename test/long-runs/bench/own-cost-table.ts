import type { OwnCost } from "./own-cost.ts";
import type { Interval } from "./statistics.ts";

/** What we want to reach. */
const GOAL = 1.5;

/** A table of at most 80 columns, and what it says of the goal. */
export function ownCostTable(costs: readonly OwnCost[], isCpuTime: boolean): string {
  const missed = costs.filter(({ ratio }) => ratio > GOAL).map(({ name }) => name);
  return [
    row("microseconds a call", "service", "floor", "service/floor", "floor/floor"),
    ...costs.map(({ name, serviceMicroseconds, floorMicroseconds, ratio, ratioSpread, noise, noiseSpread }) =>
      row(
        name,
        serviceMicroseconds.toFixed(1),
        floorMicroseconds.toFixed(1),
        shown(ratio, ratioSpread),
        shown(noise, noiseSpread),
      ),
    ),
    "",
    "In brackets: the smallest and the largest of the run's five parts.",
    `Each has ${median(costs, "driverMicroseconds")} in it of the driver: making the request and reading the response.`,
    `With its log line written the service takes ${costs.map(({ name, loggingMicroseconds }) => `${loggingMicroseconds.toFixed(1)} (${name})`).join(", ")}.`,
    ...(isCpuTime ? [] : ["This system tells no CPU time of a process: these are elapsed times."]),
    missed.length === 0
      ? `Goal reached: at most ${GOAL} times the floor's.`
      : `Goal missed: at most ${GOAL} times the floor's: ${missed.join(", ")}.`,
  ].join("\n");
}

function row(name: string, ...cells: readonly [string, string, string, string]): string {
  const widths = [10, 10, 20, 20];
  return [name.padEnd(20), ...cells.map((text, place) => text.padStart(widths[place] ?? 0))].join("").trimEnd();
}

const shown = (ratio: number, [least, most]: Interval): string =>
  `${ratio.toFixed(2)} (${least.toFixed(2)}-${most.toFixed(2)})`;

function median(costs: readonly OwnCost[], figure: "driverMicroseconds"): string {
  const sorted = costs.map((cost) => cost[figure]).sort((one, other) => one - other);
  return (sorted[Math.floor(sorted.length / 2)] ?? Number.NaN).toFixed(1);
}
