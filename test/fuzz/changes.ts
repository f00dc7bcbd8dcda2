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
 * badge number, and every row that it writes has that number, or comes with one that does: the event of a claim names the
 * number that it replaced. Two tables of the allocator say less: `segment` counts what was handed out, and `free` also has
 * what one of two racing requests of a user device was leased and gave back, because it was answered the other's.
 *
 * @param granted badge numbers of the batch's 2xx responses
 */
export function unexplainedChanges(before: Stored, after: Stored, granted: ReadonlySet<string>): string[] {
  const changes = changedRows(before, after);
  const explained = new Set([...granted, ...changes.flatMap((row) => replacedNumbers(row, granted))]);
  return changes.filter((row) => {
    if (row.startsWith("segment of ") || row.startsWith("free of ")) return granted.size === 0;
    return !numbersOf(row).some((number) => explained.has(number));
  });
}

const numbersOf = (row: string): string[] => row.match(/\b\d+\b/g) ?? [];

function replacedNumbers(row: string, granted: ReadonlySet<string>): string[] {
  if (!row.startsWith("webhook_event ") || !numbersOf(row).some((number) => granted.has(number))) return [];
  return [...row.matchAll(/replacedBadgeId\W+(\d+)/g)].flatMap(([, number]) => number ?? []);
}
