import { type Cost, NOTHING } from "./cost.ts";
import { type Billed, CPU_MILLISECONDS, OBJECT_GIGABYTES_OF_MEMORY, OBJECT_SECONDS, PRICES } from "./platform.ts";

/** How much of each thing that is billed. */
export type Amounts = Record<Billed, number>;

/** What `count` times a cost is billed for. */
export function amountsOf(cost: Cost, count: number): Amounts {
  const { invocations, logLines, objectCalls, queueOperations } = cost;
  const { d1RowsRead, d1RowsWritten, objectRowsRead, objectRowsWritten } = cost;
  return {
    invocations: count * invocations,
    cpuMilliseconds: count * invocations * CPU_MILLISECONDS,
    logLines: count * logLines,
    d1RowsRead: count * d1RowsRead,
    d1RowsWritten: count * d1RowsWritten,
    objectCalls: count * objectCalls,
    objectGigabyteSeconds: count * objectCalls * OBJECT_SECONDS * OBJECT_GIGABYTES_OF_MEMORY,
    objectRowsRead: count * objectRowsRead,
    objectRowsWritten: count * objectRowsWritten,
    queueOperations: count * queueOperations,
  };
}

export function sum(all: readonly Amounts[]): Amounts {
  const total = amountsOf(NOTHING, 0);
  for (const amounts of all) for (const thing of THINGS) total[thing] += amounts[thing];
  return total;
}

/** Dollars of each thing. @param isPlanUsed whether what the plan includes is taken off */
export function dollarsOf(amounts: Amounts, isPlanUsed: boolean): Amounts {
  const dollars = { ...amounts };
  for (const thing of THINGS) {
    const { dollars: price, included } = PRICES[thing];
    dollars[thing] = Math.max(0, amounts[thing] / 1e6 - (isPlanUsed ? included : 0)) * price;
  }
  return dollars;
}

export const total = (dollars: Amounts): number => THINGS.reduce((all, thing) => all + dollars[thing], 0);

const THINGS: readonly Billed[] = [
  "invocations",
  "cpuMilliseconds",
  "logLines",
  "d1RowsRead",
  "d1RowsWritten",
  "objectCalls",
  "objectGigabyteSeconds",
  "objectRowsRead",
  "objectRowsWritten",
  "queueOperations",
];
