import type { ApplicationId } from "../../../shared/identifiers.ts";
import { MAX_LISTED_DIFFERENCES, VERIFY_PAGE_ROWS } from "../../../shared/limits/allocator-limits.ts";
import type { Reconciliation, RowDifference } from "../../../shared/script-commands.ts";
import type { Database } from "../../storage/database.ts";
import { ROW_KEYS, type RowTable } from "../log-entry.ts";
import { rowsAfter, rowsByKey, type StoredRow } from "../tables/bulk.ts";
import type { Log } from "../tables/entry-log.ts";
import type { Tables } from "../tables/tables.ts";
import { readRowsByKey } from "./row-keys.ts";
import { PAGED_TABLES, type PageKey, pageStatement, readPage, TABLE_NAMES } from "./row-pages.ts";

interface VerifyParts {
  db: Database;
  applicationId: ApplicationId;
  tables: Tables;
  log: Log;
}

type Phase =
  | { table: RowTable; side: "d1"; after: PageKey }
  | { table: RowTable; side: "allocator"; after: string | number | null };

/**
 * Compares every row of both sides (contract section 21), a page at a time: D1's rows with the allocator's, then the allocator's
 * with D1's. Calls are decided between pages but not during a read, so each page is compared as of one moment.
 */
export class Verification {
  readonly #differences: RowDifference[] = [];
  #count = 0;
  readonly #phases: Phase[] = TABLE_NAMES.flatMap((table): Phase[] => [
    { table, side: "d1", after: PAGED_TABLES[table].start },
    { table, side: "allocator", after: null },
  ]);

  get differences(): NonNullable<Reconciliation["differences"]> {
    return { count: this.#count, first: this.#differences };
  }

  /** Compares the next page. @returns whether there are more @throws Unavailable */
  async step(parts: VerifyParts): Promise<boolean> {
    const [phase] = this.#phases;
    if (!phase) return false;
    const next = phase.side === "d1" ? await this.#compareD1(parts, phase) : await this.#compareOwn(parts, phase);
    if (next) this.#phases[0] = next;
    else this.#phases.shift();
    return this.#phases.length > 0;
  }

  async #compareD1(
    { db, applicationId, tables, log }: VerifyParts,
    phase: Extract<Phase, { side: "d1" }>,
  ): Promise<Phase | null> {
    const { table, after } = phase;
    const counters = log.head()?.counters;
    if (!counters) return null;
    const limit = VERIFY_PAGE_ROWS;
    const result = await db.atPrimary((session) =>
      pageStatement(session, table, { applicationId, counters, after, limit }).all(),
    );
    const { rows, next } = readPage(table, result, limit);
    const own = rowsByKey(
      tables.orm,
      table,
      rows.map((row) => keyOf(table, row)),
    );
    for (const row of rows) {
      const key = keyOf(table, row);
      const same = own.get(key);
      if (!same) this.#add({ table, key, problem: "only in D1" });
      else this.#compare(table, key, row, same);
    }
    return next && { ...phase, after: next };
  }

  async #compareOwn(
    { db, applicationId, tables }: VerifyParts,
    phase: Extract<Phase, { side: "allocator" }>,
  ): Promise<Phase | null> {
    const { table, after } = phase;
    const rows = rowsAfter(tables.orm, table, after, VERIFY_PAGE_ROWS);
    const keys = rows.map((row) => keyOf(table, row));
    const last = keys.at(-1);
    if (last === undefined) return null;
    const known = await readRowsByKey(db, applicationId, table, keys);
    for (const key of keys) if (!known.has(key)) this.#add({ table, key, problem: "only in the allocator" });
    return { ...phase, after: last };
  }

  #compare(table: RowTable, key: string | number, row: StoredRow, own: StoredRow): void {
    const columns = Object.keys(own).filter((name) => own[name] !== row[name]);
    if (columns.length > 0) this.#add({ table, key, problem: "different", columns });
  }

  #add(difference: RowDifference): void {
    this.#count++;
    if (this.#differences.length < MAX_LISTED_DIFFERENCES) this.#differences.push(difference);
  }
}

const keyOf = (table: RowTable, row: StoredRow): string | number => {
  const key = row[ROW_KEYS[table]];
  return typeof key === "number" ? key : String(key);
};
