import * as z from "zod";
import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import { JOURNAL_BYTES, JOURNAL_DAYS, JOURNAL_PRUNE_ENTRIES } from "../../shared/limits.ts";
import { DAY_MILLISECONDS } from "../../shared/time.ts";
import type { Entry } from "./entry.ts";

/** A place in the list of entries. */
export interface Mark {
  sequence: number;
  entry: string;
}

/** What came before the oldest entry. */
interface Base extends Mark {
  applicationId: ApplicationId;
  /** When that was the end of the list, in milliseconds: D1 restored to any later moment can be brought up to date. */
  since: number;
}

const baseRow = z
  .object({ application_id: applicationId, sequence: z.number(), entry: z.string(), since: z.number() })
  .transform(({ application_id, ...mark }): Base => ({ applicationId: application_id, ...mark }));
const markRow = z.object({ sequence: z.number(), entry: z.string() });
const sizeRow = z.object({ sequence: z.number(), size: z.number() });
const bodyRow = z.object({ body: z.string() });

/** Attempts that a sequence number has room for, a power of two: more than twice `MAX_ENTRY_ATTEMPTS`. */
const ATTEMPTS = 64;
const firstPlace = (sequence: number): number => sequence * ATTEMPTS;
const lastPlace = (sequence: number): number => firstPlace(sequence) + ATTEMPTS - 1;

/**
 * Entries before `from_place` are of a list that was begun anew: nobody reads them, and they are deleted in chunks.
 *
 * An entry's `place` is its sequence number and which attempt at that it is, as one rowid: SQLite puts rows of a table without
 * rowids that are longer than a kilobyte on pages of their own.
 */
const TABLES = `
  CREATE TABLE IF NOT EXISTS journal_base (id INTEGER PRIMARY KEY CHECK (id = 1), application_id TEXT NOT NULL,
    sequence INTEGER NOT NULL, entry TEXT NOT NULL, since INTEGER NOT NULL, from_place INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS journal_entry (place INTEGER PRIMARY KEY, id TEXT NOT NULL, since INTEGER NOT NULL,
    is_untold INTEGER NOT NULL, body TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS journal_renewal (place INTEGER PRIMARY KEY, since INTEGER NOT NULL);`;

const MARK = `place / ${ATTEMPTS} AS sequence, id AS entry`;

/** When the time of an entry began: when it was kept, or when D1 was last seen before it. */
const BEGAN = `max(since, coalesce((SELECT renewal.since FROM journal_renewal AS renewal
  WHERE renewal.place <= journal_entry.place ORDER BY renewal.place DESC LIMIT 1), 0)) AS began`;

/**
 * The object's own copy of the entries, kept one day longer than D1's Time Travel goes back: what D1 forgets in a restoration is
 * applied again from here. An entry is kept before it is sent to D1, and the platform holds the call back until storage has it
 * (Durable Objects: output gates). When it is unknown whether D1 applied an entry, there may be several with its sequence
 * number, until D1 names one of them.
 */
export class Journal {
  readonly #sql: SqlStorage;
  #fromPlace = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(TABLES);
    this.#readFromPlace();
  }

  #readFromPlace(): void {
    const row = this.#sql.exec("SELECT from_place FROM journal_base").toArray()[0];
    this.#fromPlace = z.number().parse(row?.from_place ?? 0);
  }

  /** The newest entry, if there is one. */
  #newest(columns: string): Record<string, SqlStorageValue> | undefined {
    const sql = `SELECT ${columns} FROM journal_entry WHERE place >= ? ORDER BY place DESC LIMIT 1`;
    return this.#sql.exec(sql, this.#fromPlace).toArray()[0];
  }

  /** Whose object this is, and what came before the oldest entry; undefined: it was never used, or lost its storage. */
  base(): Base | undefined {
    return baseRow.optional().parse(this.#sql.exec("SELECT * FROM journal_base").toArray()[0]);
  }

  /** D1 restored to any moment since then, in milliseconds, can be brought up to date; null: to any at all. */
  since(): number | null {
    const base = this.base();
    return base === undefined || base.sequence === 0 ? null : base.since;
  }

  /** Starts anew after a place in D1's list; the next entry comes after all that were ever kept. @param now milliseconds */
  begin(applicationId: ApplicationId, { sequence, entry }: Mark, now: number): void {
    this.#sql.exec("DELETE FROM journal_renewal");
    this.#sql.exec(
      `INSERT OR REPLACE INTO journal_base
      SELECT 1, ?, ?, ?, ?, coalesce(max(place) + 1, 0) FROM journal_entry`,
      applicationId,
      sequence,
      entry,
      now,
    );
    this.#readFromPlace();
  }

  /**
   * Keeps an entry, as the newest, before it is sent to D1.
   *
   * @param now milliseconds
   * @param isUntold whether nobody will be told of it before it is confirmed here
   */
  append(entry: Entry, now: number, isUntold: boolean): void {
    const { sequence } = entry.position;
    const places = [firstPlace(sequence), lastPlace(sequence)];
    this.#sql.exec("DELETE FROM journal_entry WHERE place BETWEEN ? AND ? AND id = ?", ...places, entry.id);
    this.#sql.exec(
      `INSERT INTO journal_entry SELECT
        coalesce((SELECT max(place) + 1 FROM journal_entry WHERE place BETWEEN ?1 AND ?2), ?1), ?3, ?4, ?5, ?6`,
      ...places,
      entry.id,
      now,
      isUntold ? 1 : 0,
      JSON.stringify(entry),
    );
  }

  /** D1 has named this entry. Others with its sequence number cannot be applied any more, and are forgotten. */
  confirm({ sequence, entry }: Mark): void {
    const attempt = [firstPlace(sequence), lastPlace(sequence), entry];
    this.#sql.exec("DELETE FROM journal_entry WHERE place BETWEEN ? AND ? AND id <> ?", ...attempt);
    this.#sql.exec(
      "UPDATE journal_entry SET is_untold = 0 WHERE place BETWEEN ? AND ? AND id = ? AND is_untold",
      ...attempt,
    );
  }

  /** Whether nobody was told of any entry with this sequence number: D1 may have another one there, of a lost instance. */
  isUntold(sequence: number): boolean {
    const sql = "SELECT min(is_untold) AS untold FROM journal_entry WHERE place BETWEEN ? AND ?";
    const [first, last] = [Math.max(firstPlace(sequence), this.#fromPlace), lastPlace(sequence)];
    return this.#sql.exec(sql, first, last).one().untold === 1;
  }

  /** Writes without a change. @throws in an instance that another has taken the place of */
  touch(): void {
    this.#sql.exec("UPDATE journal_base SET sequence = sequence");
  }

  /** Forgets an entry that D1 has refused. */
  drop(id: string): void {
    this.#sql.exec(
      `DELETE FROM journal_entry WHERE place > (SELECT max(place) FROM journal_entry) - ${ATTEMPTS} AND id = ?`,
      id,
    );
  }

  /** How many entries with this sequence number D1 may still apply. */
  countAttempts(sequence: number): number {
    const sql = "SELECT count(*) AS n FROM journal_entry WHERE place BETWEEN ? AND ?";
    return z.number().parse(this.#sql.exec(sql, firstPlace(sequence), lastPlace(sequence)).one().n);
  }

  /** The end of the list. */
  last(): Mark | undefined {
    return markRow.optional().parse(this.#newest(MARK)) ?? this.base();
  }

  /** The entry at the end of the list. */
  lastEntry(): Entry | undefined {
    const body = bodyRow.optional().parse(this.#newest("body"))?.body;
    return body === undefined ? undefined : parseEntry(body);
  }

  /** Whether the list has been at this place. */
  has({ sequence, entry }: Mark): boolean {
    const base = this.base();
    if (base?.sequence === sequence && base.entry === entry) return true;
    const sql = "SELECT 1 FROM journal_entry WHERE place BETWEEN ? AND ? AND id = ?";
    return (
      this.#sql.exec(sql, Math.max(firstPlace(sequence), this.#fromPlace), lastPlace(sequence), entry).toArray()
        .length > 0
    );
  }

  /** The entries after a place, oldest first: of several attempts at the end, the newest. */
  after({ sequence }: Pick<Mark, "sequence">, limit: number): Entry[] {
    return this.#sql
      .exec(
        `SELECT body FROM journal_entry WHERE place > ?1 AND place = (SELECT max(place) FROM journal_entry AS other
          WHERE other.place <= journal_entry.place | ${ATTEMPTS - 1}) ORDER BY place LIMIT ?2`,
        Math.max(lastPlace(sequence), this.#fromPlace - 1),
        limit,
      )
      .toArray()
      .map((row) => parseEntry(bodyRow.parse(row).body));
  }

  /** Of the newest entries those that were kept since a time in milliseconds, up to so many characters of them. */
  recent(since: number, limit: number, characters: number): Entry[] {
    const sizes = this.#sql
      .exec(
        `SELECT place / ${ATTEMPTS} AS sequence, length(body) AS size
        FROM (SELECT * FROM journal_entry WHERE place >= ?3 ORDER BY place DESC LIMIT ?1) WHERE since >= ?2`,
        limit,
        since,
        this.#fromPlace,
      )
      .toArray()
      .map((row) => sizeRow.parse(row));
    let left = characters;
    const read = sizes.filter(({ size }) => {
      left -= size;
      return left >= 0;
    });
    const first = read.at(-1);
    return first ? this.after({ sequence: first.sequence - 1 }, read.length) : [];
  }

  /** D1 was seen at an earlier place: what follows is kept for the whole time again. One row, however much follows. */
  renew({ sequence }: Mark, now: number): void {
    const place = firstPlace(sequence + 1);
    this.#sql.exec("DELETE FROM journal_renewal WHERE place >= ?", place);
    this.#sql.exec("INSERT INTO journal_renewal VALUES (?, ?)", place, now);
  }

  /** When the newest entry was kept, or applied again, in milliseconds; null: there is none. */
  newest(): number | null {
    const row = this.#newest(BEGAN);
    return row ? z.number().parse(row.began) : null;
  }

  /** Forgets a bounded number of the oldest entries that are not valid, too old, or too many. @param now milliseconds */
  prune(now: number): void {
    const invalid = this.#sql.exec(
      `DELETE FROM journal_entry WHERE place IN (SELECT place FROM journal_entry
        WHERE place < ? ORDER BY place LIMIT ?) RETURNING place`,
      this.#fromPlace,
      2 * JOURNAL_PRUNE_ENTRIES,
    );
    // As long as there are any, they are what makes it too large.
    if (invalid.toArray().length > 0) return;
    const isTooLarge = this.#sql.databaseSize > JOURNAL_BYTES;
    const before = now - JOURNAL_DAYS * DAY_MILLISECONDS;
    this.#sql.exec("DELETE FROM journal_renewal WHERE since < ?", before);
    const oldest = this.#sql
      .exec(
        `SELECT ${MARK}, since, ${BEGAN} FROM journal_entry WHERE place >= ? ORDER BY place LIMIT ?`,
        this.#fromPlace,
        2 * JOURNAL_PRUNE_ENTRIES,
      )
      .toArray();
    // The last entry stays: it is the one that D1 is at.
    const kept = oldest.findIndex(({ began }) => !isTooLarge && z.number().parse(began) >= before);
    const pruned = oldest.slice(0, kept === -1 ? Math.max(0, oldest.length - 1) : kept);
    const through = markRow.extend({ since: z.number() }).optional().parse(pruned.at(-1));
    if (!through) return;
    const { sequence, entry, since } = through;
    this.#sql.exec("UPDATE journal_base SET sequence = ?, entry = ?, since = ?", sequence, entry, since);
    this.#sql.exec("DELETE FROM journal_entry WHERE place <= ?", lastPlace(sequence));
  }
}

/** Reads a stored entry, of any version that this release knows. */
function parseEntry(body: string): Entry {
  const entry: unknown = JSON.parse(body);
  if (!isEntry(entry)) throw new Error("the journal has an entry of an unknown version");
  return entry;
}

const isEntry = (value: unknown): value is Entry =>
  typeof value === "object" && value !== null && Reflect.get(value, "version") === 1;
