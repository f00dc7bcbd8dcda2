import * as z from "zod";
import { DOOR_SEEN_WRITE_MILLISECONDS } from "../../shared/limits/live-limits.ts";
import { happenedWithin } from "../../shared/time.ts";

const row = z.object({ seen_at: z.number(), have: z.number() });

/** Time of a door's last call in milliseconds, and the change that it had then. */
interface Seen {
  seenAt: number;
  have: number;
}

/**
 * The last call of each door, in memory. It is written at most every ten minutes, because each door calls every minute, and
 * when a call's connection breaks. An eviction loses at most ten minutes.
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
  noteStart(id: string, seen: Seen): void {
    const writtenAt = this.#read(id)?.writtenAt ?? null;
    const isDue = !happenedWithin(writtenAt, seen.seenAt, DOOR_SEEN_WRITE_MILLISECONDS);
    this.#note(id, seen, isDue ? null : writtenAt);
  }

  /**
   * Notes a call that ends, unless a later one is known.
   *
   * @param isBroken writes it, because the door may not call again; otherwise `noteStart` wrote it, if that was due
   */
  noteEnd(id: string, seen: Seen, isBroken: boolean): void {
    const known = this.#read(id);
    // Without an entry, the door's secret was retired.
    if (known && known.seenAt <= seen.seenAt) this.#note(id, seen, isBroken ? null : known.writtenAt);
  }

  /** @param writtenAt when the row was last written; null writes it now */
  #note(id: string, { seenAt, have }: Seen, writtenAt: number | null): void {
    if (writtenAt === null) this.#sql.exec("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", id, seenAt, have);
    this.#known.set(id, { seenAt, have, writtenAt: writtenAt ?? seenAt });
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
