import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Allocator } from "../../../../src/worker/allocator/allocator.ts";
import journal from "../../../../src/worker/allocator/tables/migrations/meta/_journal.json";
import { HomeScheduler } from "../../../../src/worker/scheduling/home-scheduler.ts";
import { standIn } from "../../stand-in.ts";
import { Member } from "../member.ts";
import { Process, requireProcess } from "./process.ts";
import { Sqlite, type Value } from "./sqlite.ts";
import { cursorOf, emptyObject, ObjectStorage, type StoredObject } from "./storage.ts";

/** How long the runtime waits before it runs an alarm again that failed, or whose object died at it, in milliseconds. */
const ALARM_RETRY_MILLISECONDS = 2000;
/** How often a call still reaches the instance that another has superseded. */
const OLD_INSTANCE_CHANCE = 0.5;
/** How long a superseded instance may go on, in milliseconds. */
const OLD_INSTANCE_MILLISECONDS = 3000;

const CLASSES = { allocator: Allocator, clock: HomeScheduler } as const;
type ClassName = keyof typeof CLASSES;
type Instance = Allocator | HomeScheduler;

interface Running {
  process: Process;
  storage: ObjectStorage;
  instance: Instance;
  /** Before it has come to an end, the instance gets no call. */
  isReady: Promise<unknown>;
}

/** An object: what it keeps, and its instances. */
interface Known extends StoredObject {
  of: ClassName;
  name: string;
  live: Running | null;
  /** The instance that another has superseded. */
  old: Running | null;
}

/** Databases of objects, migrated once and used by one seed after another. */
const pools: Record<ClassName, Sqlite[]> = { allocator: [], clock: [] };

function makeObjectDatabase(of: ClassName): Sqlite {
  if (of === "clock") return new Sqlite();
  const folder = join(import.meta.dirname, "../../../../src/worker/allocator/tables/migrations");
  const scripts = journal.entries.map(({ tag }) => readFileSync(join(folder, `${tag}.sql`), "utf8"));
  const sqlite = new Sqlite(scripts.join("\n"));
  // As Drizzle's migrator leaves it.
  sqlite.db.exec("CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)");
  for (const { when } of journal.entries) {
    sqlite.run("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('', ?)", [when]);
  }
  return sqlite;
}

/** Runs the objects: mostly one instance of each, made when somebody calls it, on what the one before it kept. */
export class ObjectHost extends Member {
  readonly #dice = this.world.dice.of("objects");
  readonly #objects = new Map<string, Known>();
  readonly #used: Record<ClassName, number> = { allocator: 0, clock: 0 };
  #made = 0;

  /** One call of a method, at the object. @throws an error with `retryable` when the object dies at it */
  async invoke(of: ClassName, name: string, method: string, parameters: readonly unknown[]): Promise<unknown> {
    const { process, storage, instance, isReady } = this.#choose(of, name);
    const work = async () => {
      await isReady;
      const returned = await Reflect.apply(Reflect.get(instance, method), instance, parameters);
      // The output gate.
      while (storage.gate) await storage.gate;
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
    this.#objects.get(`allocator ${name}`)?.live?.process.die();
  }

  /** An application's object loses its storage. */
  lose(name: string): void {
    const object = this.#objects.get(`allocator ${name}`);
    if (!object) return;
    object.live?.process.die();
    object.old?.process.die();
    this.world.trace.add("seed", `the object of ${name} loses its storage`);
    this.world.faults.struck++;
    emptyObject(object.sqlite);
    object.alarm = null;
    this.world.replica.noteLoss(name);
  }

  /** What the object of an application keeps, or undefined when it was never called. */
  get(name: string): StoredObject | undefined {
    return this.#objects.get(`allocator ${name}`);
  }

  #choose(of: ClassName, name: string): Running {
    const object = this.#of(of, name);
    const { live, old } = object;
    if (old?.process.isAlive && this.#dice.chance(OLD_INSTANCE_CHANCE)) return old;
    if (of === "allocator" && live?.process.isAlive && this.world.faults.draw("instance")) this.#supersede(object);
    return this.#enliven(object);
  }

  #of(of: ClassName, name: string): Known {
    const key = `${of} ${name}`;
    const known = this.#objects.get(key);
    if (known) return known;
    const stored = { sqlite: this.#takeDatabase(of), values: new Map(), alarm: null };
    const made: Known = { of, name, ...stored, live: null, old: null };
    this.#objects.set(key, made);
    return made;
  }

  #takeDatabase(of: ClassName): Sqlite {
    const place = this.#used[of]++;
    const pool = pools[of];
    pool[place] ??= makeObjectDatabase(of);
    const sqlite = pool[place];
    // A seed may end before something is durable.
    if (sqlite.db.isTransaction) sqlite.db.exec("ROLLBACK");
    emptyObject(sqlite);
    return sqlite;
  }

  #supersede(object: Known): void {
    const { live } = object;
    object.old?.process.die();
    if (!live) return;
    this.world.trace.add(live.process.name, "is superseded, and goes on");
    live.process.supersededAt = this.world.timeline.now;
    live.storage.supersede(this.#takeDatabase("allocator"));
    object.old = live;
    object.live = null;
    this.world.timeline.after(this.#dice.below(OLD_INSTANCE_MILLISECONDS), () => live.process.die());
  }

  #enliven(object: Known): Running {
    const { of, name } = object;
    if (object.live?.process.isAlive) return object.live;
    const process = new Process(this.world, `${of} ${++this.#made}`);
    if (of === "allocator" && (object.live ?? object.old)) this.world.replica.noteNewInstance(name);
    const storage = new ObjectStorage(this.world, {
      ...{ object, dice: this.#dice },
      die: () => process.die(),
      setAlarm: (at) => this.#setAlarm(object, at),
    });
    process.gate = () => storage.gate;
    process.onDeath = () => storage.end();
    let isReady: Promise<unknown> = Promise.resolve();
    const state = standIn<DurableObjectState>("an object's state", {
      id: { name },
      storage: standIn<DurableObjectStorage>("an object's storage", {
        sql: {
          exec: (sql: string, ...parameters: Value[]) => cursorOf(this.#execute(name, storage, sql, parameters)),
          // The log is never too large here.
          databaseSize: 4096,
        },
        kv: {
          get: (name: string) => object.values.get(name),
          put: (name: string, value: unknown) => object.values.set(name, value),
        },
        transactionSync: (work: () => unknown) => storage.transaction(work),
        getAlarm: async () => storage.alarm,
        setAlarm: async (at: number) => {
          if (this.world.faults.draw("alarm") === "before") throw storage.fail();
          storage.setAlarm(at);
        },
      }),
      blockConcurrencyWhile: (work: () => Promise<unknown>) => {
        isReady = work();
        return isReady;
      },
      waitUntil: process.defer,
    });
    const instance = process.run(() => new CLASSES[of](state, this.world.env));
    object.live = { process, storage, instance, isReady };
    return object.live;
  }

  #execute(name: string, storage: ObjectStorage, sql: string, parameters: readonly Value[]) {
    const result = storage.execute(sql, parameters);
    if (/^update "allocator" set "copied_at"/.test(sql) && parameters[0] !== null) this.world.replica.noteCopied(name);
    if (/^insert into "entry"/.test(sql)) {
      const names = sql.slice(sql.indexOf("(") + 1, sql.indexOf(")")).split(", ");
      const [sequence, id, changes] = ["sequence", "id", "changes"].map(
        (each) => parameters[names.indexOf(`"${each}"`)],
      );
      this.world.replica.noteLogged(name, Number(sequence), String(id), String(changes));
    }
    return result;
  }

  #setAlarm(object: Known, at: number): void {
    const { timeline, faults } = this.world;
    const fault = faults.draw("alarm");
    const late = fault === "late" ? this.#dice.below(600_000) : 0;
    timeline.after(at - timeline.now + late, () => {
      if (object.alarm !== at) return;
      this.#goOff(object);
      if (fault === "twice") this.#goOff(object);
    });
  }

  #goOff(object: Known): void {
    object.alarm = null;
    const { process, storage, instance, isReady } = this.#enliven(object);
    this.world.trace.add(process.name, "alarm");
    const again = () => void this.world.timeline.after(ALARM_RETRY_MILLISECONDS, () => this.#goOff(object));
    const work = async () => {
      await isReady;
      await instance.alarm?.();
      while (storage.gate) await storage.gate;
    };
    process.outcome(work, again).catch(again);
  }
}

/** The objects of a class as the service sees them, in whatever process the service runs. */
export const objectBinding = <Class extends Instance>(of: ClassName): DurableObjectNamespace<Class> =>
  standIn<DurableObjectNamespace<Class>>(`the objects ${of}`, {
    getByName: (name: string) => new Proxy({}, { get: (_, method) => call.bind(null, of, name, String(method)) }),
  });

function call(of: ClassName, name: string, method: string, ...parameters: readonly unknown[]): Promise<unknown> {
  const { wire, objects, serviceDice } = requireProcess().world;
  return wire.call({
    part: "object",
    what: `${of} ${method}`,
    effect: () => objects.invoke(of, name, method, parameters),
    error: () => {
      const kind = serviceDice.oneOf([{ retryable: true }, { retryable: true }, { overloaded: true }, {}]);
      return Object.assign(new Error("The call to the object failed."), kind);
    },
  });
}
