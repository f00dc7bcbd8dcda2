import type { Sqlite } from "./sqlite.ts";
import { standIn } from "./stand-in.ts";

/** What an object keeps when it dies: its SQLite and its alarm. */
export class ObjectStorage {
  readonly #sqlite: Sqlite;
  readonly #onAlarmSet: (at: number) => void;
  #alarm: number | null = null;
  #lacksAlarm = false;

  /** @param onAlarmSet milliseconds since 1970-01-01 UTC */
  constructor(sqlite: Sqlite, onAlarmSet: (at: number) => void) {
    this.#sqlite = sqlite;
    this.#onAlarmSet = onAlarmSet;
  }

  get alarm(): number | null {
    return this.#alarm;
  }

  /** Whether its last alarm could not be set: until the next one is, nobody comes to reclaim leases. */
  get lacksAlarm(): boolean {
    return this.#lacksAlarm;
  }

  /** As the runtime does when the alarm goes off. */
  takeAlarm(): void {
    this.#alarm = null;
  }

  /** For whoever looks on. */
  look(sql: string, ...parameters: unknown[]): Record<string, unknown>[] {
    return this.#sqlite.run(sql, parameters).rows;
  }

  /** @param failsToSetAlarm whether this call is to fail */
  binding(failsToSetAlarm: () => boolean): DurableObjectStorage {
    return standIn<DurableObjectStorage>("an object's storage", {
      sql: standIn<SqlStorage>("an object's SQL", {
        exec: (sql: string, ...parameters: unknown[]) => this.#exec(sql, parameters),
      }),
      getAlarm: async () => this.#alarm,
      setAlarm: async (at: number) => {
        this.#lacksAlarm = failsToSetAlarm();
        if (this.#lacksAlarm) throw new Error("the object's storage is away");
        this.#alarm = at;
        this.#onAlarmSet(at);
      },
    });
  }

  /** Without an `await` in between, statements are one transaction; here nothing comes in between either way. */
  #exec(sql: string, parameters: readonly unknown[]): SqlStorageCursor<Record<string, SqlStorageValue>> {
    if (parameters.length === 0 && sql.includes(";")) {
      this.#sqlite.exec(sql);
      return cursor([]);
    }
    return cursor(this.#sqlite.run(sql, parameters).rows.map(withBuffers));
  }
}

function cursor(rows: Record<string, unknown>[]): SqlStorageCursor<Record<string, SqlStorageValue>> {
  return standIn<SqlStorageCursor<Record<string, SqlStorageValue>>>("a cursor", { toArray: () => rows });
}

/** Bytes come out of an object's SQL as an `ArrayBuffer`. */
function withBuffers(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, value instanceof Uint8Array ? value.slice().buffer : value]),
  );
}
