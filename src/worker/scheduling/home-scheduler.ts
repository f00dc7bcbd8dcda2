import { DurableObject } from "cloudflare:workers";
import * as z from "zod";
import { applicationId } from "../../shared/identifiers.ts";
import { type Context, createContext } from "../context.ts";
import { findHome } from "../homes.ts";
import { log } from "../log.ts";
import { listApplicationIds } from "../storage/applications.ts";
import { stampHeartbeat } from "../storage/heartbeat.ts";
import { registerCopy } from "../storage/number-ranges.ts";
import { BEAT_PENDING, recordTick, type Tick } from "./detect-restore.ts";
import { carryOutHomeCommands } from "./home-commands.ts";
import { NumberRegister } from "./number-register.ts";
import type { Checkpoints } from "./old-rows.ts";
import { sweepHome } from "./sweep.ts";
import { compareAllocators, wakeForCommands } from "./wake-allocators.ts";

const checkpoint = z.tuple([z.string(), z.string()]).nullable();

const tickRow = z.object({ sequence: z.number(), ticked_at: z.number(), is_register_in_doubt: z.number() });

/** How long one unreachable allocator keeps the home's replicas from being trusted. */
const MAX_WAIT_MILLISECONDS = 600_000;

/**
 * One home's scheduler, named by the home's number. Cron calls it every minute, in an invocation of its own, so that no
 * home waits for another. It sleeps between calls. Home 1's scheduler keeps the register of number ranges.
 */
export class HomeScheduler extends DurableObject<Env> {
  readonly #checkpoints: Checkpoints = {
    get: (name) => checkpoint.parse(this.ctx.storage.kv.get(name) ?? null),
    set: (name, value) => this.ctx.storage.kv.put(name, value),
  };

  readonly #register = new NumberRegister(this.ctx.storage.sql, () => Date.now());
  /**
   * The last task on the register. Tasks run one after the other, so the register does not change between two D1 calls
   * of a task.
   */
  #registerWork: Promise<void> = Promise.resolve();

  /**
   * The last comparison. Comparisons run one after the other, so that no tick overwrites a restore that another has
   * noticed.
   */
  #comparison: Promise<void> = Promise.resolve();

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    state.storage.sql.exec(`CREATE TABLE IF NOT EXISTS last_tick (id INTEGER PRIMARY KEY CHECK (id = 1),
      sequence INTEGER NOT NULL, ticked_at INTEGER NOT NULL, is_register_in_doubt INTEGER NOT NULL)`);
    // The applications whose allocators are still to compare themselves with D1, and since when.
    state.storage.sql.exec(
      "CREATE TABLE IF NOT EXISTS to_compare (application_id TEXT PRIMARY KEY, since INTEGER NOT NULL)",
    );
  }

  /** Runs a home's due work once a minute. Two ticks may overlap, except in comparisons and on the register. */
  async tick(home: number): Promise<void> {
    const context = this.#open(home);
    this.#comparison = this.#comparison.then(() => this.#recordAndCompare(context));
    await Promise.all([
      this.#comparison,
      attempt(home, "commands", () => wakeForCommands(context)),
      sweepHome(context, this.#checkpoints),
    ]);
  }

  async #recordAndCompare(context: Context): Promise<void> {
    const { home } = context;
    const isRecorded = await attempt(home, "tick", () => this.#record(context));
    const isInDoubt = this.#read()?.isRegisterInDoubt === true;
    const [isKept] = await Promise.all([
      attempt(home, "register", () => this.#keepRegister(context, isInDoubt)),
      attempt(home, "compare", () => this.#compare(context, isRecorded)),
    ]);
    const tick = this.#read();
    if (isKept && tick) this.#write({ ...tick, isRegisterInDoubt: false });
  }

  /** If D1 may have been restored, all allocators of the home, and the register, are to compare themselves with it. */
  async #record(context: Context): Promise<void> {
    const before = this.#read();
    if (before) this.#write({ ...before, sequence: BEAT_PENDING });
    const { isInDoubt, ...tick } = await recordTick(context, before);
    const applications = isInDoubt ? await listApplicationIds(context.db, Number.MAX_SAFE_INTEGER) : [];
    // With the tick, since nothing is awaited in between. Who is on the list already keeps its time.
    const add = "INSERT OR IGNORE INTO to_compare SELECT value, ? FROM json_each(?)";
    this.ctx.storage.sql.exec(add, context.now(), JSON.stringify(applications));
    this.#write({ ...tick, isRegisterInDoubt: isInDoubt || before?.isRegisterInDoubt === true });
  }

  /** Carries out commands of the script for this scheduler. @throws Unavailable */
  wake(home: number): Promise<void> {
    return this.#keepRegister(this.#open(home), false);
  }

  /** @param isInDoubt whether D1 may have been restored */
  async #keepRegister({ home, db }: Context, isInDoubt: boolean): Promise<void> {
    if (home !== 1) return;
    const done = this.#registerWork.then(async () => {
      if (isInDoubt) await this.#register.compare(registerCopy(db));
      await carryOutHomeCommands(db, this.#register);
    });
    this.#registerWork = done.catch(() => {});
    await done;
  }

  /** An allocator that cannot be reached stays on the list: an idle one would not notice the restore by itself. */
  async #compare(context: Context, isRecorded: boolean): Promise<void> {
    const { sql } = this.ctx.storage;
    const rows = sql.exec("SELECT application_id FROM to_compare").toArray();
    const applications = rows.map((row) => applicationId.parse(row.application_id));
    const failed = new Set(await compareAllocators(context, applications));
    for (const id of applications) {
      if (!failed.has(id)) sql.exec("DELETE FROM to_compare WHERE application_id = ?", id);
    }
    const waitsSince = context.now() - MAX_WAIT_MILLISECONDS;
    const isWaiting = sql.exec("SELECT 1 FROM to_compare WHERE since > ?", waitsSince).toArray().length > 0;
    if (isRecorded && !isWaiting) await stampHeartbeat(context.db, context.now());
  }

  #open(number: number): Context {
    const home = findHome(this.env, number);
    if (!home) throw new Error(`home ${number} is not bound`);
    return createContext(this.env, (work) => this.ctx.waitUntil(work), home);
  }

  #read(): (Tick & { isRegisterInDoubt: boolean }) | undefined {
    const row = tickRow.optional().parse(this.ctx.storage.sql.exec("SELECT * FROM last_tick").toArray()[0]);
    return (
      row && {
        sequence: row.sequence,
        tickedAt: row.ticked_at,
        isRegisterInDoubt: row.is_register_in_doubt === 1,
      }
    );
  }

  #write({ sequence, tickedAt, isRegisterInDoubt }: Tick & { isRegisterInDoubt: boolean }): void {
    this.ctx.storage.sql.exec(
      "INSERT OR REPLACE INTO last_tick VALUES (1, ?, ?, ?)",
      sequence,
      tickedAt,
      Number(isRegisterInDoubt),
    );
  }
}

/** Logs a failure. Other work continues, and the next tick retries. @returns whether it has succeeded */
async function attempt(home: number, work: string, run: () => Promise<void>): Promise<boolean> {
  try {
    await run();
    return true;
  } catch (error) {
    log("error", { event: "tick-task-failed", home, task: work, error });
    return false;
  }
}
