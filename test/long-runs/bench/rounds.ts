import { note, table } from "../command-line.ts";
import { type Expectation, send } from "./load.ts";
import { Clients, COMPARED, type Operation } from "./operations.ts";
import { type BenchApplication, makeApplication, type Side, type SideName } from "./sides.ts";

/** A side, and the clients that call it. */
export interface Contestant extends Side {
  clients: Clients;
}

/** @param count of applications */
export async function newContestant(side: Side, count: number, webhookUrl: string | null): Promise<Contestant> {
  const applications: BenchApplication[] = [];
  while (applications.length < count) applications.push(await makeApplication(side, webhookUrl));
  return { ...side, clients: new Clients(applications) };
}

/** Lets so many clients make these calls. @throws Error that names the side that gave a wrong response or none */
export function callSide({ name, port }: Side, clients: number, expectations: readonly Expectation[]) {
  return send(port, clients, expectations).catch((error: unknown) => {
    throw new Error(`${name}: ${error}`);
  });
}

interface Plan {
  rounds: number;
  /** No further round is begun that would end after this; one is always run, and the warm-up is not counted. */
  limitSeconds: number;
  /** Of each side before the first round: the runtime's compiler has seen each call often enough by then. */
  warmUpCalls: number;
  /** Of a measurement, for operations that name no number of their own. */
  calls: number;
}

/** These figures of one side, one operation, one round. */
type Measurement<Figures> = Figures & { operation: string; side: SideName; round: number };

/**
 * Measures each operation once a round, on each side that serves it. Within a round the sides follow each other directly,
 * and who is first rotates: what disturbs the machine for a while disturbs all of them.
 */
export async function inRounds<Figures>(
  plan: Plan,
  operations: readonly Operation[],
  all: readonly Contestant[],
  measure: (operation: Operation, contestant: Contestant, calls: number) => Promise<Figures>,
): Promise<Measurement<Figures>[]> {
  const measurements: Measurement<Figures>[] = [];
  let startedAt = 0;
  for (let round = -1; round < plan.rounds; round++) {
    if (round === 0) startedAt = performance.now();
    const elapsedSeconds = (performance.now() - startedAt) / 1000;
    if (round > 0 && elapsedSeconds * (1 + 1 / round) > plan.limitSeconds) break;
    if (round % Math.ceil(plan.rounds / 15) === 0) note(`round ${round + 1} of ${plan.rounds}`);
    for (const [place, operation] of operations.entries()) {
      const { name, sides = COMPARED, calls = plan.calls } = operation;
      const contestants = all.filter((contestant) => sides.includes(contestant.name));
      const start = (1 + round + place) % contestants.length;
      for (const contestant of [...contestants.slice(start), ...contestants.slice(0, start)]) {
        const figures = await measure(operation, contestant, round < 0 ? plan.warmUpCalls : calls);
        if (round >= 0) measurements.push({ operation: name, side: contestant.name, round, ...figures });
      }
    }
  }
  return measurements;
}

const inOrder = (values: readonly number[]): number[] => values.toSorted((one, other) => one - other);

/** @param share from 0 to 1: the value that this share of the values does not exceed (nearest rank) */
export function percentile(values: readonly number[], share: number): number {
  return inOrder(values)[Math.max(0, Math.ceil(share * values.length) - 1)] ?? Number.NaN;
}

type Ratio = ReturnType<typeof compare>;

/**
 * One side's figure as a multiple of another's, round by round. The 95 % confidence interval of the median is two of the
 * ratios, chosen by their ranks (normal approximation of the binomial distribution); of fewer than eight it is all of them.
 *
 * @param noise interval of the floor against itself: if both overlap, the sides cannot be told apart
 */
function compare(ours: readonly number[], theirs: readonly number[], noise: readonly number[] = [1]) {
  const ratios = inOrder(ours.map((own, round) => own / (theirs[round] ?? Number.NaN)));
  const { length } = ratios;
  const at = (place: number) => ratios[place] ?? Number.NaN;
  const below = Math.max(0, Math.floor(length / 2 - (1.96 * Math.sqrt(length)) / 2));
  const interval = [at(below), at(length - 1 - below)];
  const isTie = at(below) <= Math.max(...noise) && Math.min(...noise) <= at(length - 1 - below);
  return { median: percentile(ratios, 0.5), interval, isTie };
}

/**
 * One figure of an operation on each side, and the ratios; what the floor's second instance differs from its first is
 * noise. NaN is what a side does not serve.
 *
 * @param share the percentile of the rounds that is a side's figure
 */
export function summarize<Figure extends string>(
  measurements: readonly Measurement<Record<Figure, number>>[],
  operation: string,
  figure: Figure,
  share = 0.5,
) {
  const all = (side: SideName) =>
    measurements.filter((one) => one.operation === operation && one.side === side).map((one) => one[figure]);
  const of = (side: SideName) => percentile(all(side), share);
  const noise = compare(all("twin"), all("floor"));
  return {
    ...{ service: of("service"), floor: of("floor"), twin: of("twin"), noise },
    toFloor: compare(all("service"), all("floor"), noise.interval),
    toPeer: compare(all("service"), all("peer"), noise.interval),
  };
}

const shown = ({ median, interval, isTie }: Ratio): string =>
  `${isTie ? "= " : ""}${median.toFixed(2)} (${interval.map((bound) => bound.toFixed(2)).join("-")})`;

type Row = readonly [name: string, summary: ReturnType<typeof summarize>];

export function summaryTable(title: string, rows: readonly Row[]): string {
  const head = [title, "service", "floor", "service/floor", "floor/floor", "service/peer"];
  const cells = rows.map(([name, { service, floor, toFloor, noise, toPeer }]) => {
    return [name, service.toFixed(1), floor.toFixed(1), ...[toFloor, noise, toPeer].map(shown)];
  });
  return table(head, cells).replaceAll(/NaN( \(NaN-NaN\))?/g, (text) => "-".padStart(text.length));
}

export const LEGEND = `Ratios of the rounds: median, its 95 % interval in brackets; =: a tie, not to be told from
the floor measured against a second instance of itself.`;
