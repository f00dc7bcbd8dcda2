import { and, asc, desc, eq, gt, gte, lte, sql } from "drizzle-orm";
import type { CallResult } from "../commands.ts";
import { type Counters, countersOf, type Mark } from "../counters.ts";
import { type EntryChanges, type Erasure, fromStored, NO_CHANGES, toStored } from "../log-entry.ts";
import { entry } from "./schema.ts";
import type { Orm } from "./tables.ts";

export interface LoggedEntry
  extends Pick<typeof entry.$inferSelect, "sequence" | "id" | "calls" | "keptAt" | "isResent"> {
  counters: Counters;
  changes: EntryChanges;
}

/** The newest entry, without what it stores. */
export type LogHead = Mark & { counters: Counters };

/**
 * The allocator's log, which it keeps one day longer than D1's Time Travel goes back: whatever D1 is restored to, what it lacks is
 * sent again from here.
 */
export class Log {
  readonly #orm: Orm;
  readonly #insert;
  readonly #newest;

  constructor(orm: Orm) {
    this.#orm = orm;
    this.#insert = orm
      .insert(entry)
      .values({
        sequence: sql.placeholder("sequence"),
        id: sql.placeholder("id"),
        rangeSegments: sql.placeholder("rangeSegments"),
        lastOrdinal: sql.placeholder("lastOrdinal"),
        lastChange: sql.placeholder("lastChange"),
        lastSigningKey: sql.placeholder("lastSigningKey"),
        epoch: sql.placeholder("epoch"),
        hour: sql.placeholder("hour"),
        hourUsed: sql.placeholder("hourUsed"),
        statistics: sql.placeholder("statistics"),
        changes: sql.placeholder("changes"),
        calls: sql.placeholder("calls"),
        loggedBytes: sql`coalesce(${this.#ofNewest(entry.loggedBytes)}, 0) + ${sql.placeholder("bytes")}`,
        keptAt: sql.placeholder("keptAt"),
        latestAt: sql`max(coalesce(${this.#ofNewest(entry.latestAt)}, 0), ${sql.placeholder("keptAt")})`,
      })
      .prepare();
    this.#newest = orm
      .select({ sequence: entry.sequence, entry: entry.id, counters: countersOf(entry) })
      .from(entry)
      .orderBy(desc(entry.sequence))
      .limit(1)
      .prepare();
  }

  /** Undefined: the allocator has no rows yet. */
  head(): LogHead | undefined {
    return this.#newest.get();
  }

  append({ counters, ...row }: Omit<LoggedEntry, "isResent">): void {
    const stored = { ...row, ...counters, changes: toStored(row.changes) };
    this.#insert.run({ ...stored, bytes: bytesOf(stored) });
  }

  /** Bytes of the entries after the oldest one. Their pages are up to twice as large. */
  bytes(): number {
    const ends = [asc(entry.sequence), desc(entry.sequence)].map(
      (order) => this.#orm.select({ logged: entry.loggedBytes }).from(entry).orderBy(order).limit(1).get()?.logged ?? 0,
    );
    return Math.max(...ends) - Math.min(...ends);
  }

  /** Whether the log has the entry at which D1 is. */
  has({ sequence, entry: id }: Mark): boolean {
    const isMark = and(eq(entry.sequence, sequence), eq(entry.id, id));
    return this.#orm.select({ id: entry.id }).from(entry).where(isMark).get() !== undefined;
  }

  /** Entries after one, oldest first. @throws Error when a later release wrote one of them */
  after(sequence: number, limit: number): LoggedEntry[] {
    return this.#orm
      .select()
      .from(entry)
      .where(gt(entry.sequence, sequence))
      .orderBy(asc(entry.sequence))
      .limit(limit)
      .all()
      .map((row) => ({ ...row, counters: countersOf(row), changes: fromStored(row.changes) }));
  }

  /**
   * D1 counts as restored to this entry, and may have had the later ones. They and this entry are kept for another 31 days, because D1 may
   * be restored to this moment.
   */
  renewAfter(sequence: number, now: number): void {
    // One statement: each rewrites the entries, which may be gigabytes.
    const isResent = sql`${entry.isResent} OR ${entry.sequence} > ${sequence}`;
    this.#orm.update(entry).set({ keptAt: now, isResent }).where(gte(entry.sequence, sequence)).run();
  }

  /**
   * Calls that the last entries store, by group, newest first.
   *
   * @param since only those that may be repeated after this time, in milliseconds
   */
  recentGroups(limit: number, since: number): CallResult[][] {
    const recent = this.#last(limit);
    // Results of past calls are not read: a result may be a whole badge, and all of them would not fit into memory.
    const query = sql`SELECT ${recent.sequence} AS sequence, value AS result FROM ${recent}, json_each(${recent.calls})
      WHERE value ->> 'until' > ${since} ORDER BY ${recent.sequence} DESC`;
    const rows = this.#orm.all<{ sequence: number; result: string }>(query);
    return [...Map.groupBy(rows, ({ sequence }) => sequence).values()].map((group) =>
      group.map(({ result }) => JSON.parse(result)),
    );
  }

  /** Numbers that the last entries have withdrawn: another application has them. */
  recentlyWithdrawn(limit: number): number[] {
    const recent = this.#last(limit);
    const query = sql`SELECT value AS withdrawn FROM ${recent}, json_each(${recent.changes}, '$.withdrawn')`;
    return this.#orm.all<{ withdrawn: number }>(query).map(({ withdrawn }) => withdrawn);
  }

  #last(limit: number) {
    return this.#orm.select().from(entry).orderBy(desc(entry.sequence)).limit(limit).as("recent");
  }

  /** Users whom the entries after one erase, or whose search they report as done. */
  erasuresAfter(sequence: number): Erasure[] {
    const erasures = sql`json_each(${entry.changes}, '$.erasures')`;
    // Few entries erase a user, and to search a text is faster than to parse it.
    const query = sql`SELECT value AS erasure FROM ${entry}, ${erasures}
      WHERE ${entry.sequence} > ${sequence} AND instr(${entry.changes}, '"erasures"') > 0`;
    return this.#orm.all<{ erasure: string }>(query).map((row) => JSON.parse(row.erasure));
  }

  /** What was logged, oldest first, in steps. */
  *walk(through: number): Generator<LoggedEntry> {
    for (let sequence = -1; ; ) {
      const [next] = this.after(sequence, 1);
      if (!next || next.sequence > through) return;
      yield next;
      sequence = next.sequence;
    }
  }

  /** `keptAt` of the oldest entry; null if it is the only one. */
  oldestKeptAt(): number | null {
    return this.#ofOldest()?.from ?? null;
  }

  /**
   * When the second entry followed the oldest one, in milliseconds: the oldest is kept for 31 days from then. Null if
   * it is the only one.
   */
  endOfOldest(): number | null {
    return this.#ofOldest()?.until ?? null;
  }

  /** `keptAt` of the newest entry. */
  newestKeptAt(): number | null {
    return this.#ofNewest(entry.keptAt).get()?.value ?? null;
  }

  /** The latest time at which anything was logged, in milliseconds. */
  latestLoggedAt(): number {
    return this.#ofNewest(entry.latestAt).get()?.value ?? 0;
  }

  #ofNewest(column: typeof entry.loggedBytes | typeof entry.keptAt | typeof entry.latestAt) {
    return this.#orm.select({ value: column }).from(entry).orderBy(desc(entry.sequence)).limit(1);
  }

  #ofOldest(): { from: number; until: number } | null {
    const columns = { keptAt: entry.keptAt };
    const [first, second] = this.#orm.select(columns).from(entry).orderBy(asc(entry.sequence)).limit(2).all();
    return first && second ? { from: first.keptAt, until: second.keptAt } : null;
  }

  /**
   * Deletes at most `limit` of the oldest entries. The newest of those that are too old stays, because D1 was at it
   * until the next one came, and may be restored to it.
   *
   * @param keptBefore milliseconds: older ones go; null: all may
   * @param through D1 has the entries up to this one: it stays, and so do later ones
   * @returns whether there may be more
   */
  prune(keptBefore: number | null, through: number, limit: number): boolean {
    // Usually there is nothing to delete; then only two rows are read.
    if (keptBefore !== null && (this.endOfOldest() ?? keptBefore) >= keptBefore) return false;
    const oldest = this.#orm
      .select({ sequence: entry.sequence, keptAt: entry.keptAt })
      .from(entry)
      .where(lte(entry.sequence, through))
      .orderBy(asc(entry.sequence))
      .limit(limit + 1)
      .all();
    const kept = keptBefore === null ? -1 : oldest.findIndex(({ keptAt }) => keptAt >= keptBefore);
    const last = (kept === -1 ? oldest : oldest.slice(0, kept)).at(-2);
    if (!last) return false;
    this.#orm.delete(entry).where(lte(entry.sequence, last.sequence)).run();
    return kept === -1 && oldest.length > limit;
  }

  clear(): void {
    this.#orm.delete(entry).run();
  }

  /**
   * Replaces the log with two entries that stand for the same rows, which are copied from D1 next. The first one stays
   * because D1 may be restored to it.
   *
   * @param heads where D1 was, and the empty entry to which the copy has moved it
   */
  begin(heads: readonly LogHead[], now: number): void {
    this.clear();
    for (const { sequence, entry: id, counters } of heads) {
      this.append({ sequence, id, counters, changes: NO_CHANGES, calls: [], keptAt: now });
    }
  }
}

/** What an entry's other columns take, about. */
const OTHER_COLUMNS_BYTES = 150;

const bytesOf = ({ changes, calls }: Pick<typeof entry.$inferSelect, "changes" | "calls">): number =>
  OTHER_COLUMNS_BYTES + new TextEncoder().encode(JSON.stringify([changes, calls])).length;
