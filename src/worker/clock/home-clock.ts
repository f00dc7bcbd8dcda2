import { DurableObject } from "cloudflare:workers";
import * as z from "zod";
import { DUE_POLL_MILLISECONDS, INBOX_POLL_MILLISECONDS } from "../../shared/limits.ts";
import { isYounger } from "../../shared/time.ts";
import { type Context, createContext } from "../context.ts";
import { findHome } from "../homes.ts";
import { log } from "../log.ts";
import { carryOutCommands, compareObjects, DueWork, recordDue } from "./due.ts";
import { noteTick, type Tick } from "./restorations.ts";
import type { Cursors } from "./retention.ts";
import { sweepHome } from "./sweep.ts";

const cursor = z.array(z.string()).nullable();

const tickRow = z.object({
  home: z.number(),
  sequence: z.number(),
  ticked_at: z.number(),
  compare_after: z.string().nullable(),
});

/**
 * One home's clock (contract section 17), named by the home's number: it does what has become due in its home, in invocations of
 * its own, so that no home waits for another. Cron calls it every minute; in between it looks for commands of the script.
 */
export class HomeClock extends DurableObject<Env> {
  #dueAt = 0;
  /** One chunk at a time, however slow its objects are. */
  #isComparing = false;
  readonly #work = new DueWork();
  readonly #cursors: Cursors = {
    get: (name) => cursor.parse(this.ctx.storage.kv.get(name) ?? null),
    set: (name, value) => this.ctx.storage.kv.put(name, value),
  };

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    state.storage.sql.exec(`CREATE TABLE IF NOT EXISTS tick (id INTEGER PRIMARY KEY CHECK (id = 1), home INTEGER NOT NULL,
      sequence INTEGER NOT NULL, ticked_at INTEGER NOT NULL, compare_after TEXT)`);
  }

  /** Once a minute: all that has become due, in bounded chunks. All of it may be repeated, even by two ticks at once. */
  async tick(home: number): Promise<void> {
    const context = this.#open(home);
    const before = this.#read();
    try {
      this.#write(home, await noteTick(context, before));
    } catch (error) {
      log("error", { event: "tick-failed", home, error });
    }
    await this.ctx.storage.setAlarm(Date.now() + INBOX_POLL_MILLISECONDS);
    await Promise.all([
      this.#compare(context),
      recordDue(context, this.#work),
      carryOutCommands(context, this.#work),
      sweepHome(context, this.#cursors),
    ]);
  }

  /** Every few seconds: commands of the script, and less often what is due. */
  override async alarm(): Promise<void> {
    const tick = this.#read();
    if (!tick) return;
    await this.ctx.storage.setAlarm(Date.now() + INBOX_POLL_MILLISECONDS);
    const context = this.#open(tick.home);
    const isDue = !isYounger(this.#dueAt, Date.now(), DUE_POLL_MILLISECONDS);
    if (isDue) this.#dueAt = Date.now();
    const work = Promise.all([
      carryOutCommands(context, this.#work),
      this.#compare(context),
      ...(isDue ? [recordDue(context, this.#work)] : []),
    ]);
    this.ctx.waitUntil(work);
    // The next alarm comes even if an object hangs: other objects have commands, too.
    await Promise.race([work, scheduler.wait(INBOX_POLL_MILLISECONDS)]);
  }

  /** After a restoration of D1: a chunk of the home's objects compares itself with D1, then the next one. */
  async #compare(context: Context): Promise<void> {
    const tick = this.#read();
    if (tick?.compareAfter == null || this.#isComparing) return;
    this.#isComparing = true;
    try {
      const compareAfter = await compareObjects(context, tick.compareAfter);
      // Unless another restoration was noticed meanwhile.
      this.ctx.storage.sql.exec(
        "UPDATE tick SET compare_after = ? WHERE sequence = ? OR compare_after = ?",
        compareAfter,
        tick.sequence,
        tick.compareAfter === "" ? null : tick.compareAfter,
      );
    } finally {
      this.#isComparing = false;
    }
  }

  #open(number: number): Context {
    const home = findHome(this.env, number);
    if (!home) throw new Error(`home ${number} is not bound`);
    return createContext(this.env, (work) => this.ctx.waitUntil(work), home);
  }

  #read(): (Tick & { home: number }) | undefined {
    const row = tickRow.optional().parse(this.ctx.storage.sql.exec("SELECT * FROM tick").toArray()[0]);
    return row && { home: row.home, sequence: row.sequence, tickedAt: row.ticked_at, compareAfter: row.compare_after };
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
