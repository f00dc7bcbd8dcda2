import * as z from "zod";
import { Allocator } from "../../../../src/worker/allocator/allocator.ts";
import { HomeClock } from "../../../../src/worker/scheduling/home-clock.ts";
import type { Dice } from "../../dice.ts";
import { standIn } from "../../stand-in.ts";
import { Member } from "../member.ts";
import { Process, requireProcess } from "./process.ts";
import { type Row, Sqlite, type Value } from "./sqlite.ts";

/** How long the runtime waits before it runs an alarm again that failed, or whose object died at it, in milliseconds. */
const ALARM_RETRY_MILLISECONDS = 2000;
/** How often an object's state is one that it may be restored to. */
const KEEP_CHANCE = 0.3;
/** How often a home's clock looks for commands once more before it ticks again: really, every few seconds. */
const CLOCK_ALARM_CHANCE = 0.4;

const CLASSES = { allocator: Allocator, clock: HomeClock } as const;
type ClassName = keyof typeof CLASSES;
type Instance = Allocator | HomeClock;

/** Rows by table. */
type Content = Map<string, Row[]>;

/** What an object keeps when it dies (its storage and its alarm), and its instance, if there is one. */
class StoredObject {
  readonly sqlite = new Sqlite();
  readonly values = new Map<string, unknown>();
  alarm: number | null = null;
  /** What it was: it may be restored to that. */
  readonly earlier: Content[] = [];
  /** Whether it was restored or lost, and nobody called it since. */
  hasForgotten = false;
  /** When that was the last time, in milliseconds. */
  forgottenAt = -Infinity;
  live: { process: Process; instance: Instance } | null = null;
}

/** Runs the objects: one instance of each at a time, made when somebody calls it, on what the one before it kept. */
export class ObjectHost extends Member {
  readonly #dice = this.world.dice.of("objects");
  readonly #objects = new Map<string, StoredObject>();
  #made = 0;

  /** One call of a method, at the object. @throws an error with `retryable` when the object dies at it */
  invoke(of: ClassName, name: string, method: string, parameters: readonly unknown[]): Promise<unknown> {
    const { process, instance } = this.#enliven(of, name);
    const work = async () => {
      const returned = await Reflect.apply(Reflect.get(instance, method), instance, parameters);
      this.#noteAnswer(process, parameters[1], returned);
      this.world.trace.add(process.name, `${method}: ${JSON.stringify(returned)}`);
      return returned;
    };
    return process.outcome(work, () => {
      const error = new Error("Durable Object reset because its code was updated, or its machine was lost.");
      throw Object.assign(error, { retryable: this.#dice.chance(0.8) });
    });
  }

  #noteAnswer({ name }: Process, call: unknown, answer: unknown): void {
    const given = z.object({ id: z.string() }).safeParse(call);
    const told = z.object({ outcome: z.object({ kind: z.literal("unavailable") }) }).safeParse(answer);
    if (given.success && told.success) this.world.entries.noteGivenUp(given.data.id, name);
  }

  /** The object is moved to another machine, or its code is updated. */
  evict(name: string): void {
    this.get(name)?.live?.process.die();
  }

  /** An application's object is restored to an older state, or its storage is lost. */
  forget(name: string, dice: Dice): void {
    const object = this.#objects.get(`allocator ${name}`);
    if (!object) return;
    object.live?.process.die();
    const earlier = dice.chance(0.5) ? dice.pick(object.earlier) : undefined;
    this.world.trace.add("seed", `the object of ${name} ${earlier ? "is restored" : "loses its storage"}`);
    this.world.faults.struck++;
    for (const table of contentOf(object.sqlite).keys()) object.sqlite.run(`DELETE FROM "${table}"`);
    for (const [table, rows] of earlier ?? []) {
      for (const row of rows) object.sqlite.insert(table, row);
    }
    object.alarm = null;
    object.hasForgotten = true;
    object.forgottenAt = this.world.timeline.now;
  }

  /** The object of an application, or undefined when it was never called. */
  get(name: string): Readonly<StoredObject> | undefined {
    return this.#objects.get(`allocator ${name}`);
  }

  #enliven(of: ClassName, name: string): NonNullable<StoredObject["live"]> {
    const key = `${of} ${name}`;
    const object = this.#objects.get(key) ?? new StoredObject();
    this.#objects.set(key, object);
    object.hasForgotten = false;
    if (object.live?.process.isAlive) return object.live;
    const process = new Process(`${of} ${++this.#made}`, this.world);
    const state = standIn<DurableObjectState>("an object's state", {
      id: { name },
      storage: {
        sql: {
          exec: (sql: string, ...parameters: Value[]) => this.#execute(of, object, sql, parameters),
          databaseSize: 4096,
        },
        kv: {
          get: (name: string) => object.values.get(name),
          put: (name: string, value: unknown) => void object.values.set(name, value),
        },
        setAlarm: async (at: number) => this.#setAlarm(of, name, object, at),
      },
      waitUntil: process.defer,
    });
    object.live = { process, instance: process.run(() => new CLASSES[of](state, this.world.env)) };
    return object.live;
  }

  /** Without an `await` in between, statements are one transaction; here nothing comes in between either way. */
  #execute(of: ClassName, object: StoredObject, sql: string, parameters: readonly Value[]) {
    const isScript = parameters.length === 0 && sql.includes(";");
    if (isScript) object.sqlite.db.exec(sql);
    const rows = isScript ? [] : object.sqlite.run(sql, parameters).rows;
    const isWrite = /^\s*(INSERT|UPDATE|DELETE)/i.test(sql);
    if (/^INSERT INTO journal_entry/.test(sql)) {
      this.world.entries.noteKept(JSON.parse(String(parameters.at(-1))), requireProcess().name);
    }
    if (of === "allocator" && isWrite && this.world.plan.forgetful && this.#dice.chance(KEEP_CHANCE)) {
      object.earlier.push(contentOf(object.sqlite));
    }
    const one = () => {
      const [row] = rows;
      if (rows.length !== 1 || !row) throw new Error("Expected exactly one result from SQL query");
      return row;
    };
    return { toArray: () => rows, one };
  }

  #setAlarm(of: ClassName, name: string, object: StoredObject, at: number): void {
    const { timeline, faults } = this.world;
    if (of === "clock" && (!faults.isOn || !this.#dice.chance(CLOCK_ALARM_CHANCE))) return;
    const fault = faults.draw("alarm");
    if (fault === "before") throw new Error("the object's storage is away");
    object.alarm = at;
    const late = fault === "late" ? this.#dice.below(600_000) : 0;
    timeline.after(at - timeline.now + late, () => {
      if (object.alarm !== at) return;
      this.#goOff(of, name, object);
      if (fault === "twice") this.#goOff(of, name, object);
    });
  }

  #goOff(of: ClassName, name: string, object: StoredObject): void {
    const { process, instance } = this.#enliven(of, name);
    this.world.trace.add(process.name, "alarm");
    object.alarm = null;
    const again = () => void this.world.timeline.after(ALARM_RETRY_MILLISECONDS, () => this.#goOff(of, name, object));
    process.outcome(() => instance.alarm(), again).catch(again);
  }
}

function contentOf(sqlite: Sqlite): Content {
  const { rows } = sqlite.run("SELECT name FROM sqlite_master WHERE type = 'table'");
  return new Map(rows.map(({ name }) => [String(name), sqlite.run(`SELECT * FROM "${name}"`).rows]));
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
