/** Rows of tables, by name. */
type Stored = Record<string, unknown[]>;

/** @returns the rows that only one of the two has, as JSON after the name of their table */
function changedRows(before: Stored, after: Stored): string[] {
  const tables = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return tables.flatMap((table) => {
    const old = rowsOf(before, table);
    const fresh = rowsOf(after, table);
    const changed = [...[...old].filter((row) => !fresh.has(row)), ...[...fresh].filter((row) => !old.has(row))];
    return changed.map((row) => `${table} ${row}`);
  });
}

const rowsOf = (stored: Stored, table: string): Set<string> =>
  new Set((stored[table] ?? []).map((row) => JSON.stringify(row)));

/**
 * Changes of storage that no granted request of a batch explains. A granted request that changes something responds with a
 * badge number, a user or an event, and every row that it writes has that, or comes with one that does: the event of a
 * claim names the number that it replaced. Some tables say less: `segment` counts what was handed out, and `free` and `ready`
 * also have what one of two racing requests of a user device was leased and gave back, because it was answered the other's.
 *
 * @param granted badge numbers, users and events of the batch's 2xx responses
 */
export function unexplainedChanges(before: Stored, after: Stored, granted: ReadonlySet<unknown>): string[] {
  const changes = changedRows(before, after);
  const explained = new Set([...granted, ...changes.flatMap((row) => replacedNumbers(row, granted))]);
  return changes.filter((row) => {
    if (/^(segment|free|ready) of \S+ /.test(row)) return granted.size === 0;
    // A block, and an event that is sent again, are named; whatever else changes has the number of a badge.
    if (/^blocked_user /.test(row)) return !textsOf(row).some((text) => granted.has(text));
    if (/^webhook_event /.test(row) && textsOf(row).some((text) => granted.has(text))) return false;
    return !numbersOf(row).some((number) => explained.has(number));
  });
}

/** Whole values of the row. */
const textsOf = (row: string): unknown[] => Object.values(JSON.parse(row.slice(row.indexOf("{"))));

const numbersOf = (row: string): string[] => row.match(/\b\d+\b/g) ?? [];

function replacedNumbers(row: string, granted: ReadonlySet<unknown>): string[] {
  if (!row.startsWith("webhook_event ") || !numbersOf(row).some((number) => granted.has(number))) return [];
  return [...row.matchAll(/replacedBadgeId\W+(\d+)/g)].flatMap(([, number]) => number ?? []);
}
