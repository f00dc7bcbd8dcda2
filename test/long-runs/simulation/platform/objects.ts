import { Allocator } from "../../../../src/worker/allocator/allocator.ts";
import { standIn } from "../../stand-in.ts";
import { Member } from "../member.ts";
import { Process, requireProcess } from "./process.ts";
import { Sqlite } from "./sqlite.ts";

/** How long the runtime waits before it runs an alarm again that failed, or whose object died at it, in milliseconds. */
const ALARM_RETRY_MILLISECONDS = 2000;

/** An application's object: what it keeps when it dies (its SQLite and its alarm), and its instance, if there is one. */
interface StoredObject {
  sqlite: Sqlite;
  alarm: number | null;
  /** Whether its last alarm could not be set: until the next one is, nobody comes to reclaim leases. */
  lacksAlarm: boolean;
  live?: { process: Process; allocator: Allocator };
}

/** Databases of objects of earlier seeds, emptied. */
const spare: Sqlite[] = [];

/** Runs the objects: one instance of each at a time, made when somebody calls it, on what the one before it kept. */
export class ObjectHost extends Member {
  readonly #dice = this.world.dice.of("objects");
  readonly #objects = new Map<string, StoredObject>();
  #made = 0;

  /** One call of a method, at the object. @throws an error with `retryable` when the object dies at it */
  invoke(name: string, method: string, parameters: readonly unknown[]): Promise<unknown> {
    const { process, allocator } = this.#enliven(name);
    return new Promise((resolve, reject) => {
      const forget = process.onDeath(() => {
        const error = new Error("Durable Object reset because its code was updated, or its machine was lost.");
        reject(Object.assign(error, { retryable: this.#dice.chance(0.8) }));
      });
      const result = process.run(async () => Reflect.apply(Reflect.get(allocator, method), allocator, parameters));
      result.then(resolve, reject).finally(forget);
    });
  }

  /** The object is moved to another machine, or its code is updated. */
  evict(name: string): void {
    this.get(name)?.live?.process.die();
  }

  /** The object of an application, or undefined when it was never called. */
  get(name: string): Readonly<StoredObject> | undefined {
    return this.#objects.get(name);
  }

  /** Gives the databases back for the next seed. */
  close(): void {
    for (const { sqlite } of this.#objects.values()) {
      sqlite.clear();
      spare.push(sqlite);
    }
  }

  #enliven(name: string): NonNullable<StoredObject["live"]> {
    const object = this.#objects.get(name) ?? { sqlite: spare.pop() ?? new Sqlite(), alarm: null, lacksAlarm: false };
    this.#objects.set(name, object);
    if (object.live?.process.isAlive) return object.live;
    const process = new Process(`object ${++this.#made}`, this.world);
    const state = standIn<DurableObjectState>("an object's state", {
      id: standIn<DurableObjectId>("an object's ID", { name }),
      storage: this.#storage(name, object),
      waitUntil: (work: Promise<unknown>) => {
        work.catch((error) => this.world.trace.add(process.name, `deferred work failed: ${error}`));
      },
    });
    object.live = { process, allocator: process.run(() => new Allocator(state, this.world.env)) };
    return object.live;
  }

  #storage(name: string, object: StoredObject): DurableObjectStorage {
    return standIn<DurableObjectStorage>("an object's storage", {
      sql: standIn<SqlStorage>("an object's SQL", {
        exec: (sql: string, ...parameters: unknown[]) => execute(object.sqlite, sql, parameters),
      }),
      getAlarm: async () => object.alarm,
      setAlarm: async (at: number) => {
        object.lacksAlarm = this.world.faults.draw("alarm") === "before";
        if (object.lacksAlarm) throw new Error("the object's storage is away");
        object.alarm = at;
        this.#alarmAt(name, object, at);
      },
    });
  }

  #alarmAt(name: string, object: StoredObject, at: number): void {
    const { timeline, faults } = this.world;
    const fault = faults.draw("alarm");
    const late = fault === "late" ? this.#dice.below(600_000) : 0;
    timeline.after(at - timeline.now + late, () => {
      if (object.alarm !== at) return;
      this.#goOff(name, object);
      if (fault === "twice") this.#goOff(name, object);
    });
  }

  #goOff(name: string, object: StoredObject): void {
    const { timeline, trace } = this.world;
    const { process, allocator } = this.#enliven(name);
    trace.add(process.name, "alarm");
    object.alarm = null;
    const again = () => void timeline.after(ALARM_RETRY_MILLISECONDS, () => this.#goOff(name, object));
    const forget = process.onDeath(again);
    const failed = () => {
      forget();
      again();
    };
    process.run(() => allocator.alarm()).then(forget, failed);
  }
}

/** Without an `await` in between, statements are one transaction; here nothing comes in between either way. */
function execute(sqlite: Sqlite, sql: string, parameters: readonly unknown[]) {
  const isScript = parameters.length === 0 && sql.includes(";");
  if (isScript) sqlite.exec(sql);
  const rows = isScript ? [] : sqlite.run(sql, parameters).rows.map(withBuffers);
  return standIn<SqlStorageCursor<Record<string, SqlStorageValue>>>("a cursor", { toArray: () => rows });
}

/** Bytes come out of an object's SQL as an `ArrayBuffer`. */
function withBuffers(row: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(row);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, value instanceof Uint8Array ? value.slice().buffer : value]),
  );
}

/** The objects as the service sees them, in whatever process the service runs. */
export const allocatorBinding = standIn<DurableObjectNamespace<Allocator>>("the allocators", {
  getByName: (name: string) =>
    new Proxy(Object.create(null), {
      get:
        (_, method) =>
        (...parameters: unknown[]) =>
          call(name, String(method), parameters),
    }),
});

function call(name: string, method: string, parameters: readonly unknown[]): Promise<unknown> {
  const process = requireProcess();
  const { wire, objects, serviceDice } = process.world;
  return wire.call(process, {
    part: "object",
    what: `object ${method}`,
    effect: () => objects.invoke(name, method, parameters),
    told: (result) => JSON.stringify(result) ?? "done",
    error: () => {
      const kind = serviceDice.oneOf([{ retryable: true }, { retryable: true }, { overloaded: true }, {}]);
      return Object.assign(new Error("The call to the object failed."), kind);
    },
  });
}
