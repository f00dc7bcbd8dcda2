import * as z from "zod";
import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import { JOURNAL_BYTES, JOURNAL_DAYS, JOURNAL_PRUNE_ENTRIES } from "../../shared/limits.ts";
import type { Entry } from "./entry.ts";

/** A place in the list of entries. */
export interface Mark {
  sequence: number;
  entry: string;
}

const baseRow = z.object({ application_id: applicationId, sequence: z.number(), entry: z.string() });
const markRow = z.object({ sequence: z.number(), entry: z.string() });
const sizeRow = z.object({ sequence: z.number(), size: z.number() });
const bodyRow = z.object({ body: z.string() });

const TABLES = `
  CREATE TABLE IF NOT EXISTS base (id INTEGER PRIMARY KEY CHECK (id = 1), application_id TEXT NOT NULL,
    sequence INTEGER NOT NULL, entry TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS entry (sequence INTEGER NOT NULL, attempt INTEGER NOT NULL, id TEXT NOT NULL,
    previous TEXT NOT NULL, since INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (sequence, attempt)) WITHOUT ROWID;`;

const DAY_MILLISECONDS = 24 * 3600 * 1000;

/**
 * The object's own copy of the entries, kept one day longer than D1's Time Travel goes back: what D1 forgets in a restoration is
 * applied again from here. An entry is kept before it is sent to D1, and the platform holds the call back until storage has it
 * (Durable Objects: output gates). When it is unknown whether D1 applied an entry, there may be several with its sequence
 * number, until D1 names one of them.
 */
export class Journal {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(TABLES);
  }

  /** Whose object this is, and what came before the oldest entry; undefined: it was never used, or lost its storage. */
  base(): (Mark & { applicationId: ApplicationId }) | undefined {
    const row = baseRow.optional().parse(this.#sql.exec("SELECT * FROM base").toArray()[0]);
    return row && { applicationId: row.application_id, sequence: row.sequence, entry: row.entry };
  }

  /** Starts anew after a place in D1's list. */
  begin(applicationId: ApplicationId, { sequence, entry }: Mark): void {
    this.#sql.exec("DELETE FROM entry");
    this.#sql.exec("INSERT OR REPLACE INTO base VALUES (1, ?, ?, ?)", applicationId, sequence, entry);
  }

  /** Keeps an entry, as the newest, before it is sent to D1. @param now milliseconds */
  append(entry: Entry, now: number): void {
    const { sequence } = entry.position;
    this.#sql.exec("DELETE FROM entry WHERE sequence = ? AND id = ?", sequence, entry.id);
    this.#sql.exec(
      `INSERT INTO entry SELECT ?1, coalesce((SELECT max(attempt) + 1 FROM entry WHERE sequence = ?1), 0), ?2, ?3, ?4, ?5`,
      sequence,
      entry.id,
      entry.previous,
      now,
      JSON.stringify(entry),
    );
  }

  /** Forgets entries that can not be applied any more, because D1 has named another with their sequence number. */
  confirm({ sequence, entry }: Mark): void {
    this.#sql.exec("DELETE FROM entry WHERE sequence = ? AND id <> ?", sequence, entry);
  }

  /** Writes without a change. @throws in an instance that another has taken the place of */
  touch(): void {
    this.#sql.exec("UPDATE base SET sequence = sequence");
  }

  /** Forgets an entry that D1 has refused. */
  drop(id: string): void {
    this.#sql.exec("DELETE FROM entry WHERE sequence = (SELECT max(sequence) FROM entry) AND id = ?", id);
  }

  /** How many entries with this sequence number D1 may still apply. */
  countAttempts(sequence: number): number {
    return z.number().parse(this.#sql.exec("SELECT count(*) AS n FROM entry WHERE sequence = ?", sequence).one().n);
  }

  /** The end of the list. */
  last(): Mark | undefined {
    const row = this.#sql
      .exec("SELECT sequence, id AS entry FROM entry ORDER BY sequence DESC, attempt DESC LIMIT 1")
      .toArray()[0];
    return markRow.optional().parse(row) ?? this.base();
  }

  /** The entry at the end of the list. */
  lastEntry(): Entry | undefined {
    const row = this.#sql.exec("SELECT body FROM entry ORDER BY sequence DESC, attempt DESC LIMIT 1").toArray()[0];
    const body = bodyRow.optional().parse(row)?.body;
    return body === undefined ? undefined : parseEntry(body);
  }

  /** Whether the list has been at this place. */
  has({ sequence, entry }: Mark): boolean {
    const base = this.base();
    if (base?.sequence === sequence && base.entry === entry) return true;
    return this.#sql.exec("SELECT 1 FROM entry WHERE sequence = ? AND id = ?", sequence, entry).toArray().length > 0;
  }

  /** The entries after a place, oldest first: of several attempts at the end, the newest. */
  after({ sequence }: Pick<Mark, "sequence">, limit: number): Entry[] {
    return this.#sql
      .exec(
        `SELECT body FROM entry WHERE sequence > ?1 AND attempt = (SELECT max(attempt) FROM entry AS other
          WHERE other.sequence = entry.sequence) ORDER BY sequence LIMIT ?2`,
        sequence,
        limit,
      )
      .toArray()
      .map((row) => parseEntry(bodyRow.parse(row).body));
  }

  /** The newest entries that were kept or applied again since a time in milliseconds, up to so many characters of them. */
  recent(since: number, limit: number, characters: number): Entry[] {
    const sizes = this.#sql
      .exec(
        "SELECT sequence, length(body) AS size FROM entry WHERE since >= ? ORDER BY sequence DESC LIMIT ?",
        since,
        limit,
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

  /** D1 was seen at an earlier place: what follows is kept for the whole time again. */
  renew({ sequence }: Mark, now: number): void {
    this.#sql.exec("UPDATE entry SET since = ? WHERE sequence > ?", now, sequence);
  }

  /** When the newest entry was kept, in milliseconds; null: there is none. */
  newest(): number | null {
    const row = this.#sql.exec("SELECT since FROM entry ORDER BY sequence DESC, attempt DESC LIMIT 1").toArray()[0];
    return row ? z.number().parse(row.since) : null;
  }

  /** When the oldest entry was kept, in milliseconds; null: there is none. */
  oldest(): number | null {
    const row = this.#sql.exec("SELECT since FROM entry ORDER BY sequence LIMIT 1").toArray()[0];
    return row ? z.number().parse(row.since) : null;
  }

  /** Forgets a bounded number of the oldest entries that are too old, or too many. @param now milliseconds */
  prune(now: number): void {
    const isTooLarge = this.#sql.databaseSize > JOURNAL_BYTES;
    const before = now - JOURNAL_DAYS * DAY_MILLISECONDS;
    const oldest = this.#sql
      .exec("SELECT sequence, id AS entry, since FROM entry ORDER BY sequence LIMIT ?", 2 * JOURNAL_PRUNE_ENTRIES)
      .toArray();
    // The last entry stays: it is the one that D1 is at.
    const kept = oldest.findIndex(({ since }) => !isTooLarge && z.number().parse(since) >= before);
    const pruned = oldest.slice(0, kept === -1 ? Math.max(0, oldest.length - 1) : kept);
    const through = markRow.optional().parse(pruned.at(-1));
    if (!through) return;
    this.#sql.exec("UPDATE base SET sequence = ?, entry = ?", through.sequence, through.entry);
    this.#sql.exec("DELETE FROM entry WHERE sequence <= ?", through.sequence);
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
