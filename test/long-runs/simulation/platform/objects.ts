import { Allocator } from "../../../../src/worker/allocator/allocator.ts";
import type { Dice } from "../../dice.ts";
import { ObjectStorage } from "./object-storage.ts";
import type { Platform } from "./platform.ts";
import { Process, requireProcess } from "./process.ts";
import { Sqlite } from "./sqlite.ts";
import { standIn } from "./stand-in.ts";

/** How long the runtime waits before it runs an alarm again that failed, or whose object died at it, in milliseconds. */
const ALARM_RETRY_MILLISECONDS = 2000;

interface LiveObject {
  process: Process;
  allocator: Allocator;
}

/** Looks at an object just when it answers a call. */
export type Observer = (
  name: string,
  call: { method: string; parameters: readonly unknown[]; answer: unknown },
) => void;

/** Databases of objects of earlier seeds, emptied. */
const spare: Sqlite[] = [];

/** Runs the objects: one instance of each at a time, made when somebody calls it, on what the one before it kept. */
export class ObjectHost {
  readonly #platform: Platform;
  readonly #env: Env;
  readonly #dice: Dice;
  readonly #clockError: () => number;
  readonly #observe: Observer;
  readonly #databases: Sqlite[] = [];
  readonly #storages = new Map<string, ObjectStorage>();
  readonly #live = new Map<string, LiveObject>();
  #made = 0;

  /** @param clockError milliseconds by which the next machine's clock is ahead */
  constructor(parts: { platform: Platform; env: Env; dice: Dice; clockError: () => number; observe: Observer }) {
    this.#platform = parts.platform;
    this.#env = parts.env;
    this.#dice = parts.dice;
    this.#clockError = parts.clockError;
    this.#observe = parts.observe;
  }

  /** One call of a method, at the object. @throws an error with `retryable` when the object dies at it */
  invoke(name: string, method: string, parameters: readonly unknown[]): Promise<unknown> {
    const { process, allocator } = this.#enliven(name);
    return new Promise((resolve, reject) => {
      const forget = process.onDeath(() => {
        const error = new Error("Durable Object reset because its code was updated, or its machine was lost.");
        reject(Object.assign(error, { retryable: this.#dice.chance(0.8) }));
      });
      const result = process.run(async () => Reflect.apply(Reflect.get(allocator, method), allocator, parameters));
      const observed = result.then((answer) => {
        this.#observe(name, { method, parameters, answer });
        return answer;
      });
      observed.then(resolve, reject).finally(forget);
    });
  }

  /** The object is moved to another machine, or its code is updated. */
  evict(name: string): void {
    this.#live.get(name)?.process.die();
  }

  /** The storage of an application's object, or undefined when it was never called. */
  storageOf(name: string): ObjectStorage | undefined {
    return this.#storages.get(name);
  }

  /** Gives the databases back for the next seed. */
  close(): void {
    for (const database of this.#databases) database.clear();
    spare.push(...this.#databases);
  }

  #enliven(name: string): LiveObject {
    const known = this.#live.get(name);
    if (known?.process.isAlive) return known;
    const process = new Process(`object ${++this.#made}`, this.#platform, this.#clockError());
    const storage = this.#storage(name);
    const state = standIn<DurableObjectState>("an object's state", {
      id: standIn<DurableObjectId>("an object's ID", { name }),
      storage: storage.binding(() => this.#failsToSetAlarm()),
      waitUntil: (work: Promise<unknown>) => {
        work.catch((error) => this.#platform.trace.add(process.name, `deferred work failed: ${error}`));
      },
    });
    const allocator = process.run(() => new Allocator(state, this.#env));
    const live = { process, allocator };
    this.#live.set(name, live);
    return live;
  }

  #failsToSetAlarm(): boolean {
    return this.#platform.faults.draw("alarm") === "before";
  }

  #storage(name: string): ObjectStorage {
    const known = this.#storages.get(name);
    if (known) return known;
    const database = spare.pop() ?? new Sqlite();
    this.#databases.push(database);
    const storage = new ObjectStorage(database, (at) => this.#alarmAt(name, storage, at));
    this.#storages.set(name, storage);
    return storage;
  }

  #alarmAt(name: string, storage: ObjectStorage, at: number): void {
    const { timeline, faults } = this.#platform;
    const fault = faults.draw("alarm");
    const late = fault === "late" ? this.#dice.below(600_000) : 0;
    timeline.after(at - timeline.now + late, () => {
      if (storage.alarm !== at) return;
      this.#goOff(name, storage);
      if (fault === "twice") this.#goOff(name, storage);
    });
  }

  #goOff(name: string, storage: ObjectStorage): void {
    const { timeline, trace } = this.#platform;
    const { process, allocator } = this.#enliven(name);
    trace.add(process.name, "alarm");
    storage.takeAlarm();
    const again = () => timeline.after(ALARM_RETRY_MILLISECONDS, () => this.#goOff(name, storage));
    const forget = process.onDeath(again);
    process
      .run(() => allocator.alarm())
      .then(forget, () => {
        forget();
        again();
      });
  }
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
  const { wire, objects, serviceDice } = process.platform;
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
