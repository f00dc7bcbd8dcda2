import { z } from "zod";
import type { Exchange } from "../support/documented.ts";

/** Rows of tables, by name. */
type Stored = Record<string, unknown[]>;

const linesOf = (stored: Stored): Set<string> =>
  new Set(Object.entries(stored).flatMap(([table, rows]) => rows.map((row) => `${table} ${JSON.stringify(row)}`)));

/**
 * Changes of storage that no granted request of a batch explains. A granted request that changes something responds with a
 * badge number, a user or an event, and every row that it writes has that, or comes with one that does: the event of a
 * claim names the number that it replaced. Some tables say less: `segment` counts what was handed out, and `free` and `ready`
 * also have what one of two racing requests of a user device was leased and gave back, because it was answered the other's.
 */
export function unexplainedChanges(before: Stored, after: Stored, batch: readonly Exchange[]): string[] {
  const granted = grantedNames(batch);
  const [old, fresh] = [linesOf(before), linesOf(after)];
  const changes = [...[...old].filter((row) => !fresh.has(row)), ...[...fresh].filter((row) => !old.has(row))];
  const explained = new Set([...granted, ...changes.flatMap((row) => replacedNumbers(row, granted))]);
  return changes.filter((row) => {
    if (/^(segment|free|ready) of \S+ /.test(row)) return granted.size === 0;
    // A block, and an event that is sent again, are named; whatever else changes has the number of a badge.
    if (/^blocked_user /.test(row)) return !valuesOf(row).some((text) => granted.has(text));
    if (/^webhook_event /.test(row) && valuesOf(row).some((text) => granted.has(text))) return false;
    return !numbersOf(row).some((number) => explained.has(number));
  });
}

const text = z.string();
const named = z.object({ badgeId: text, id: text, userId: text, revoked: z.array(text) }).partial();

/** Badge numbers, users and events of the responses that granted something. Reading changes nothing. */
function grantedNames(batch: readonly Exchange[]): Set<unknown> {
  const granted = batch.filter(({ method, status }) => status < 300 && !["GET", "HEAD", "OPTIONS"].includes(method));
  return new Set(granted.flatMap(({ body }) => Object.values(named.parse(JSON.parse(body))).flat()));
}

/** Whole values of the row. */
const valuesOf = (row: string): unknown[] => Object.values(JSON.parse(row.slice(row.indexOf("{"))));

const numbersOf = (row: string): string[] => row.match(/\b\d+\b/g) ?? [];

function replacedNumbers(row: string, granted: ReadonlySet<unknown>): string[] {
  if (!row.startsWith("webhook_event ") || !numbersOf(row).some((number) => granted.has(number))) return [];
  return [...row.matchAll(/replacedBadgeId\W+(\d+)/g)].flatMap(([, number]) => number ?? []);
}
