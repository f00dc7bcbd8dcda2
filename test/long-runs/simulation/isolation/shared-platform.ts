import { consumeDeliveries } from "../../../../src/worker/webhooks/consumer.ts";
import type { DeliveryMessage } from "../../../../src/worker/webhooks/delivery-message.ts";
import { D1_READ_MILLISECONDS, D1_WRITE_MILLISECONDS } from "../../scale/prices.ts";
import { standIn } from "../../stand-in.ts";
import { Member } from "../member.ts";
import { type ApplicationPlan, MINUTE } from "../plan.ts";
import { makeHomeDatabase, type Result, run, type Statement } from "../platform/d1.ts";
import { requireProcess } from "../platform/process.ts";
import type { World } from "../world.ts";

/**
 * What a transaction takes of D1's time besides its first statement: a chunk of statistics of 6,000 badges, which are counted some
 * four times, takes 10 ms (docs/scale.md, Statistics); a changed row with its indexes was measured in a local SQLite.
 */
const STATEMENT_MILLISECONDS = 0.1;
const ROW_READ_MILLISECONDS = 0.0004;
const ROW_CHANGED_MILLISECONDS = 0.02;

/** From an isolate to whatever it calls, of a caller in the home's place (test/long-runs/scale/latency.ts). Objects are beside D1. */
const WAY_MILLISECONDS = 5;

/** wrangler.toml; and the consumers that run at once, at most (Queues: Limits). */
const MAX_BATCH_MESSAGES = 100;
const MAX_CONSUMERS = 250;
const QUEUE_RETRY_MILLISECONDS = 10_000;

/** One database for everybody in the home: one transaction at a time, each as long as its statements and rows take. */
export class SharedD1 extends Member {
  readonly sqlite = makeHomeDatabase({
    diceNow: () => this.world.serviceDice,
    now: () => this.world.timeline.now,
  });
  #freeAt = 0;
  /** Rows that aggregates have counted: SQLite does not tell how many rows a statement has read. */
  #counted = 0;
  /** How long it was busy, in milliseconds. */
  busy = 0;

  constructor(world: World) {
    super(world);
    const { db } = this.sqlite;
    const countRow = (rows: number) => {
      this.#counted++;
      return rows + 1;
    };
    db.aggregate("count", { start: 0, step: countRow });
    db.aggregate("count", { start: 0, step: (rows: number, value) => (value === null ? rows : countRow(rows)) });
  }

  /** Rows so far. */
  #changed(): number {
    return Number(this.sqlite.run("SELECT total_changes() AS changed").rows[0]?.changed);
  }

  async execute(statements: readonly Statement[]): Promise<{ results: Result[]; bookmark: number }> {
    const { timeline } = this.world;
    this.#counted = 0;
    let returned = 0;
    const changedBefore = this.#changed();
    try {
      const { result } = this.sqlite.transaction(() => run(this.sqlite, statements, true));
      returned = result.flatMap(({ results }) => results).length;
      return { results: result, bookmark: 0 };
    } finally {
      const isRead = statements.every(({ sql }) => /^\s*SELECT/i.test(sql));
      const taken =
        (isRead ? D1_READ_MILLISECONDS : D1_WRITE_MILLISECONDS) +
        (statements.length - 1) * STATEMENT_MILLISECONDS +
        (returned + this.#counted) * ROW_READ_MILLISECONDS +
        (this.#changed() - changedBefore) * ROW_CHANGED_MILLISECONDS;
      this.busy += taken;
      this.#freeAt = Math.max(this.#freeAt, timeline.now) + taken;
      await timeline.sleep(Math.ceil(this.#freeAt - timeline.now));
    }
  }
}

/**
 * Takes faults and chance out of a world, and gives what applications share its time: D1, the queue's consumers, and the home's
 * clock. All reads go to the primary; what replicas take off it makes every application faster.
 */
export function shareHome(world: World, applications: ApplicationPlan[]): SharedD1 {
  const { timeline, isolates, queue, wire, administrator } = world;
  const d1 = new SharedD1(world);
  Object.assign(world.plan, { clockErrorMilliseconds: 0, forgetful: false });
  const home = world.d1.at(1);
  for (const application of applications) administrator.create(application);
  for (const table of ["application", "application_secret", "signing_key", "application_head"]) {
    for (const row of home.look(`SELECT * FROM ${table}`)) d1.sqlite.insert(table, row);
  }
  d1.sqlite.run("UPDATE application SET require_proof = 0");
  home.executeNear = (statements) => d1.execute(statements);
  wire.call = async ({ effect }) => {
    const way = requireProcess().name.startsWith("isolate") ? WAY_MILLISECONDS : 0;
    await timeline.sleep(way);
    const result = await effect();
    await timeline.sleep(way);
    return result;
  };
  const waiting: DeliveryMessage[] = [];
  let consumers = 0;
  const consume = async () => {
    if (consumers === MAX_CONSUMERS || waiting.length === 0) return;
    consumers++;
    const messages = waiting.splice(0, MAX_BATCH_MESSAGES);
    const brought = messages.map((body) => ({ body, retry: () => queue.take(body, QUEUE_RETRY_MILLISECONDS) }));
    const batch = standIn<MessageBatch>("a batch of messages", { queue: "badge-webhooks", messages: brought });
    await isolates.enter((contextOf) => consumeDeliveries(contextOf, batch));
    consumers--;
    await consume();
  };
  queue.take = (message, delayMilliseconds) => {
    timeline.after(delayMilliseconds, () => {
      waiting.push(message);
      timeline.after(1, () => void consume());
    });
  };
  const tick = () => {
    void isolates.sweep();
    timeline.after(MINUTE, tick);
  };
  tick();
  return d1;
}
