import { DurableObject } from "cloudflare:workers";
import * as z from "zod";
import { applicationId } from "../../shared/identifiers.ts";
import { type Context, createContext } from "../context.ts";
import { findHome } from "../homes.ts";
import { log } from "../log.ts";
import { stampHeartbeat } from "../storage/heartbeat.ts";
import { registerCopy } from "../storage/number-ranges.ts";
import { BEAT_PENDING, recordTick, type Tick } from "./detect-restore.ts";
import { carryOutHomeCommands } from "./home-commands.ts";
import { NumberRegister } from "./number-register.ts";
import type { Checkpoints } from "./old-rows.ts";
import { sweepHome } from "./sweep.ts";
import { compareAllocators, compareChunk, wakeForCommands } from "./wake-allocators.ts";

const checkpoint = z.tuple([z.string(), z.string()]).nullable();

const tickRow = z.object({
  sequence: z.number(),
  ticked_at: z.number(),
  compare_after: z.string().nullable(),
});

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
    state.storage.sql.exec(`CREATE TABLE IF NOT EXISTS tick (id INTEGER PRIMARY KEY CHECK (id = 1), home INTEGER NOT NULL,
      sequence INTEGER NOT NULL, ticked_at INTEGER NOT NULL, compare_after TEXT)`);
    state.storage.sql.exec(
      "CREATE TABLE IF NOT EXISTS unreached (application_id TEXT PRIMARY KEY, since INTEGER NOT NULL)",
    );
  }

  /** Runs a home's due work once a minute, in bounded chunks. Two ticks may overlap, except in comparisons and on the register. */
  async tick(home: number): Promise<void> {
    const context = this.#open(home);
    const recordAndCompare = async () => {
      const record = async () => {
        const before = this.#read();
        if (before) this.#write(home, { ...before, sequence: BEAT_PENDING });
        this.#write(home, await recordTick(context, before));
      };
      const isRecorded = await attempt(home, "tick", record);
      const isInDoubt = this.#read()?.compareAfter != null;
      const [isKept] = await Promise.all([
        attempt(home, "register", () => this.#keepRegister(context, isInDoubt)),
        attempt(home, "compare", () => this.#compare(context, isRecorded)),
      ]);
      const tick = this.#read();
      // The next tick compares everything again.
      if (isInDoubt && !isKept && tick) this.#write(home, { ...tick, compareAfter: "" });
    };
    this.#comparison = this.#comparison.then(recordAndCompare);
    await Promise.all([
      this.#comparison,
      attempt(home, "commands", () => wakeForCommands(context)),
      sweepHome(context, this.#checkpoints),
    ]);
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

  /** After a restore of D1, makes the home's allocators compare themselves with it, chunk by chunk. */
  async #compare(context: Context, isRecorded: boolean): Promise<void> {
    const { sql } = this.ctx.storage;
    await this.#retryUnreached(context);
    for (let tick = this.#read(); tick?.compareAfter != null; tick = this.#read()) {
      const { next, failed } = await compareChunk(context, tick.compareAfter);
      for (const id of failed) sql.exec("INSERT OR IGNORE INTO unreached VALUES (?, ?)", id, context.now());
      this.#write(context.home, { ...tick, compareAfter: next });
    }
    const waitsSince = context.now() - MAX_WAIT_MILLISECONDS;
    const isWaiting = sql.exec("SELECT 1 FROM unreached WHERE since > ?", waitsSince).toArray().length > 0;
    if (isRecorded && !isWaiting) await stampHeartbeat(context.db, context.now());
  }

  /** Retries the allocators that an earlier tick could not reach. An idle one would not notice the restore by itself. */
  async #retryUnreached(context: Context): Promise<void> {
    const rows = this.ctx.storage.sql.exec("SELECT application_id FROM unreached").toArray();
    const unreached = rows.map((row) => applicationId.parse(row.application_id));
    const failed = await compareAllocators(context, unreached);
    for (const id of unreached.filter((one) => !failed.includes(one))) {
      this.ctx.storage.sql.exec("DELETE FROM unreached WHERE application_id = ?", id);
    }
  }

  #open(number: number): Context {
    const home = findHome(this.env, number);
    if (!home) throw new Error(`home ${number} is not bound`);
    return createContext(this.env, (work) => this.ctx.waitUntil(work), home);
  }

  #read(): Tick | undefined {
    const row = tickRow.optional().parse(this.ctx.storage.sql.exec("SELECT * FROM tick").toArray()[0]);
    return row && { sequence: row.sequence, tickedAt: row.ticked_at, compareAfter: row.compare_after };
  }

  #write(home: number, { sequence, tickedAt, compareAfter }: Tick): void {
    this.ctx.storage.sql.exec(
      "INSERT OR REPLACE INTO tick VALUES (1, ?, ?, ?, ?)",
      home,
      sequence,
      tickedAt,
      compareAfter,
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
