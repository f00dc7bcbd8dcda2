import * as z from "zod";
import { DOOR_SEEN_WRITE_MILLISECONDS } from "../../shared/limits/live-limits.ts";

const row = z.object({ seen_at: z.number(), have: z.number() });

/** Time of a door's last call in milliseconds, and the change that it had then. */
interface Seen {
  seenAt: number;
  have: number;
}

/**
 * The last call of each door, in memory. It is written at most every ten minutes, because each door calls every minute. An
 * eviction loses at most ten minutes.
 */
export class SeenDoors {
  readonly #sql: SqlStorage;
  readonly #known = new Map<string, Seen & { writtenAt: number }>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    // Without a separate index for the key, each write is one row.
    sql.exec(`CREATE TABLE IF NOT EXISTS seen (id TEXT PRIMARY KEY, seen_at INTEGER NOT NULL, have INTEGER NOT NULL)
      WITHOUT ROWID`);
  }

  /** Notes a call that begins, and writes it if that is due. */
  noteStart(id: string, { seenAt, have }: Seen): void {
    const writtenAt = this.#read(id)?.writtenAt;
    const isDue = writtenAt === undefined || seenAt - writtenAt >= DOOR_SEEN_WRITE_MILLISECONDS;
    if (isDue) this.#sql.exec("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", id, seenAt, have);
    this.#known.set(id, { seenAt, have, writtenAt: isDue ? seenAt : writtenAt });
  }

  /** Notes a call that ends, unless a later one is known. It writes nothing: `noteStart` did, if that was due. */
  noteEnd(id: string, { seenAt, have }: Seen): void {
    const known = this.#read(id);
    // Without an entry, the door's secret was retired.
    if (known && known.seenAt < seenAt) this.#known.set(id, { ...known, seenAt, have });
  }

  find(id: string): Seen | undefined {
    return this.#read(id);
  }

  /** Deletes a door whose secret was retired. */
  forget(id: string): void {
    this.#known.delete(id);
    this.#sql.exec("DELETE FROM seen WHERE id = ?", id);
  }

  #read(id: string): (Seen & { writtenAt: number }) | undefined {
    const known = this.#known.get(id);
    if (known) return known;
    const stored = row.optional().parse(this.#sql.exec("SELECT seen_at, have FROM seen WHERE id = ?", id).toArray()[0]);
    return stored && { seenAt: stored.seen_at, have: stored.have, writtenAt: stored.seen_at };
  }
}
