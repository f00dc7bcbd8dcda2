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
  const isNamed = (row: string, names = granted) => namesIn(row).some((name) => names.has(name));
  const events = changes.filter((row) => row.startsWith("webhook_event ") && isNamed(row));
  const explained = new Set([...granted, ...events.flatMap(badgeNumbersIn)]);
  return changes.filter((row) =>
    /^(segment|free|ready) of /.test(row) ? granted.size === 0 : !isNamed(row, explained),
  );
}

const text = z.string();
const named = z.object({ badgeId: text, id: text, userId: text, revoked: z.array(text) }).partial();

/** Badge numbers, users and events of the responses that granted something. Reading changes nothing. */
function grantedNames(batch: readonly Exchange[]): Set<unknown> {
  const granted = batch.filter(({ method, status }) => status < 300 && !["GET", "HEAD", "OPTIONS"].includes(method));
  return new Set(granted.flatMap(({ body }) => Object.values(named.parse(JSON.parse(body))).flat()));
}

/** Whole values of the row, such as a user, and the numbers of badges in them. */
const namesIn = (row: string): unknown[] =>
  Object.values<unknown>(JSON.parse(row.slice(row.indexOf("{")))).concat(badgeNumbersIn(row));

/** The ranges of tests have numbers of ten digits. */
const badgeNumbersIn = (row: string): string[] => row.match(/\b\d{10}\b/g) ?? [];
