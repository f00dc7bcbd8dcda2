import { createExecutionContext, runInDurableObject, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import { type Context, createContext } from "../../src/worker/context.ts";
import { findHome } from "../../src/worker/homes.ts";
import worker from "../../src/worker/index.ts";
import { recordTick } from "../../src/worker/scheduling/detect-restore.ts";
import { sweepHome } from "../../src/worker/scheduling/sweep.ts";
import { wakeForCommands } from "../../src/worker/scheduling/wake-allocators.ts";
import { stampHeartbeat } from "../../src/worker/storage/heartbeat.ts";
import { type Cost, NOTHING } from "../long-runs/scale/cost.ts";
import { allocatorOf, aroundAllocators, aroundObjectD1, ring } from "./allocator.ts";
import { billOf } from "./bill.ts";
import { callWith, UNLIMITED } from "./bindings.ts";
import { type AroundTrip, aroundD1 } from "./d1.ts";
import { bindDatabase, homeDatabase, testHome } from "./home.ts";
import type { Answer, CallOptions } from "./http.ts";
import { log } from "./log.ts";
import { messagesOf, objectsSendTo, queueThat } from "./queue.ts";

const isPart = (name: string): name is keyof Cost => name in NOTHING;
const PARTS = Object.keys(NOTHING).filter(isPart);

/** The Worker and the object of one application, with a meter on all that the platform bills. */
export class Meter {
  readonly #application: { id: string };
  readonly #bindings: Partial<Env>;
  readonly #queue = queueThat((message) => {
    this.#add({ queueOperations: 1 });
    this.#messages.push(message);
  });
  #cost: Cost = { ...NOTHING };
  #messages: unknown[] = [];
  /** Of the requests that it has sent. */
  readonly #requestIds = new Set<unknown>();

  constructor(application: { id: string }) {
    this.#application = application;
    this.#bindings = {
      DEVICE_LIMIT: UNLIMITED,
      CLIENT_IP_LIMIT: UNLIMITED,
      ...bindDatabase(aroundD1(homeDatabase(), this.#aroundTrip)),
      ALLOCATOR: aroundAllocators((_, go) => {
        this.#add({ objectCalls: 1 });
        return go();
      }),
      WEBHOOKS: this.#queue,
    };
  }

  /** What everything that `act` does costs, all together. */
  async measure(act: () => Promise<unknown>): Promise<Cost> {
    this.#cost = { ...NOTHING };
    objectsSendTo(this.#queue);
    await aroundObjectD1(this.#application, () => this.#aroundTrip);
    const stopObject = await this.#meterObject();
    const before = log.lines().length;
    await act();
    const own = log
      .lines()
      .slice(before)
      .filter((line) => this.#isOwn(line));
    this.#add({ logLines: own.length, ...(await stopObject()) });
    return this.#cost;
  }

  async request(method: string, path: string, options: CallOptions): Promise<Answer> {
    this.#add({ invocations: 1 });
    const answer = await callWith(this.#bindings, method, path, options);
    this.#requestIds.add(answer.headers.get("x-request-id"));
    return answer;
  }

  /** The queue brings what was sent to it, in one batch. A message that is brought is read and deleted. */
  async deliver(): Promise<void> {
    const messages = this.forget();
    this.#add({ invocations: 1, queueOperations: 2 * messages.length });
    const execution = createExecutionContext();
    await worker.queue(messagesOf(messages), { ...env, ...this.#bindings }, execution);
    await waitOnExecutionContext(execution);
  }

  /** @returns what was sent to the queue, which brings it no more */
  forget(): unknown[] {
    return this.#messages.splice(0);
  }

  /** The clock of the application's home ticks: cron starts the Worker, which calls the clock's object. */
  async tick(): Promise<void> {
    this.#add({ invocations: 1, objectCalls: 1 });
    const sequence = Number((await homeDatabase().prepare("SELECT sequence FROM heartbeat").first("sequence")) ?? 0);
    await this.#atHome(async (context) => {
      const now = Date.now();
      await recordTick(context, { sequence, tickedAt: now });
      await stampHeartbeat(context.db, now);
      await wakeForCommands(context);
      await sweepHome(context, { get: () => null, set: () => {} });
    });
  }

  async #atHome(work: (context: Context) => Promise<void>): Promise<void> {
    const execution = createExecutionContext();
    const home = findHome({ ...env, ...this.#bindings }, testHome());
    if (!home) throw new Error("the home is not bound");
    await work(createContext({ ...env, ...this.#bindings }, (promise) => execution.waitUntil(promise), home));
    await waitOnExecutionContext(execution);
  }

  /** The object's alarm rings. It is billed like a call. */
  async ring(): Promise<void> {
    this.#add({ objectCalls: 1 });
    await ring(this.#application);
  }

  readonly #aroundTrip: AroundTrip = async (statements, send) => {
    const result = await send();
    const { rowsRead, rowsWritten } = await billOf(statements, result);
    this.#add({ d1RoundTrips: 1, d1RowsRead: rowsRead, d1RowsWritten: rowsWritten });
    return result;
  };

  /** Keeps every cursor of the object's SQLite; what it read and wrote is known when it has ended. */
  async #meterObject(): Promise<() => Promise<Pick<Cost, "objectRowsRead" | "objectRowsWritten">>> {
    const stub = allocatorOf(this.#application);
    const exec = await runInDurableObject(stub, (_, { storage }) => vi.spyOn(storage.sql, "exec"));
    exec.mockClear();
    return () =>
      runInDurableObject(stub, () => {
        const cursors = exec.mock.results.flatMap(({ type, value }) => (type === "return" ? [value] : []));
        exec.mockRestore();
        return {
          objectRowsRead: cursors.reduce((sum, { rowsRead }) => sum + rowsRead, 0),
          objectRowsWritten: cursors.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0),
        };
      });
  }

  /** Not of another file's request, application or home. */
  #isOwn({ requestId, application, home }: Record<string, unknown>): boolean {
    return (
      (requestId === undefined || this.#requestIds.has(requestId)) &&
      (application === undefined || application === this.#application.id) &&
      (home === undefined || home === testHome())
    );
  }

  #add(more: Partial<Cost>): void {
    for (const part of PARTS) this.#cost[part] += more[part] ?? 0;
  }
}
