import { Allocator } from "../../../../src/worker/allocator/allocator.ts";
import { standIn } from "../../stand-in.ts";
import { Member } from "../member.ts";
import { Process, requireProcess } from "./process.ts";
import { Sqlite, type Value } from "./sqlite.ts";

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

/** Runs the objects: one instance of each at a time, made when somebody calls it, on what the one before it kept. */
export class ObjectHost extends Member {
  readonly #dice = this.world.dice.of("objects");
  readonly #objects = new Map<string, StoredObject>();
  #made = 0;

  /** One call of a method, at the object. @throws an error with `retryable` when the object dies at it */
  invoke(name: string, method: string, parameters: readonly unknown[]): Promise<unknown> {
    const { process, allocator } = this.#enliven(name);
    const work = async () => {
      const returned = await Reflect.apply(Reflect.get(allocator, method), allocator, parameters);
      this.world.trace.add(process.name, `${method}: ${JSON.stringify(returned)}`);
      return returned;
    };
    return process.outcome(work, () => {
      const error = new Error("Durable Object reset because its code was updated, or its machine was lost.");
      throw Object.assign(error, { retryable: this.#dice.chance(0.8) });
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

  #enliven(name: string): NonNullable<StoredObject["live"]> {
    const object = this.#objects.get(name) ?? { sqlite: new Sqlite(), alarm: null, lacksAlarm: false };
    this.#objects.set(name, object);
    if (object.live?.process.isAlive) return object.live;
    const process = new Process(`object ${++this.#made}`, this.world);
    const state = standIn<DurableObjectState>("an object's state", {
      id: { name },
      storage: {
        sql: { exec: (sql: string, ...parameters: Value[]) => execute(object.sqlite, sql, parameters) },
        getAlarm: async () => object.alarm,
        setAlarm: async (at: number) => this.#setAlarm(name, object, at),
      },
      waitUntil: process.defer,
    });
    object.live = { process, allocator: process.run(() => new Allocator(state, this.world.env)) };
    return object.live;
  }

  #setAlarm(name: string, object: StoredObject, at: number): void {
    const { timeline, faults } = this.world;
    const fault = faults.draw("alarm");
    object.lacksAlarm = fault === "before";
    if (object.lacksAlarm) throw new Error("the object's storage is away");
    object.alarm = at;
    const late = fault === "late" ? this.#dice.below(600_000) : 0;
    timeline.after(at - timeline.now + late, () => {
      if (object.alarm !== at) return;
      this.#goOff(name, object);
      if (fault === "twice") this.#goOff(name, object);
    });
  }

  #goOff(name: string, object: StoredObject): void {
    const { process, allocator } = this.#enliven(name);
    this.world.trace.add(process.name, "alarm");
    object.alarm = null;
    const again = () => void this.world.timeline.after(ALARM_RETRY_MILLISECONDS, () => this.#goOff(name, object));
    process.outcome(() => allocator.alarm(), again).catch(again);
  }
}

/** Without an `await` in between, statements are one transaction; here nothing comes in between either way. */
function execute(sqlite: Sqlite, sql: string, parameters: readonly Value[]) {
  const isScript = parameters.length === 0 && sql.includes(";");
  if (isScript) sqlite.db.exec(sql);
  const rows = isScript ? [] : sqlite.run(sql, parameters).rows;
  // Bytes come out of an object's SQL as an `ArrayBuffer`.
  const toValue = (value: unknown) => (value instanceof Uint8Array ? value.slice().buffer : value);
  const toRow = (row: object) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toValue(value)]));
  return { toArray: () => rows.map(toRow) };
}

/** The objects as the service sees them, in whatever process the service runs. */
export const allocatorBinding = standIn<DurableObjectNamespace<Allocator>>("the allocators", {
  getByName: (name: string) => new Proxy({}, { get: (_, method) => call.bind(null, name, String(method)) }),
});

function call(name: string, method: string, ...parameters: readonly unknown[]): Promise<unknown> {
  const { wire, objects, serviceDice } = requireProcess().world;
  return wire.call({
    part: "object",
    what: `object ${method}`,
    effect: () => objects.invoke(name, method, parameters),
    error: () => {
      const kind = serviceDice.oneOf([{ retryable: true }, { retryable: true }, { overloaded: true }, {}]);
      return Object.assign(new Error("The call to the object failed."), kind);
    },
  });
}
