import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Load } from "./loops.ts";
import type { Application } from "./phones.ts";
import type { Findings, Order, Reply } from "./thread.ts";

/** The phones, in a thread of their own. Does one thing at a time. */
export class Generator {
  readonly #thread: Worker;
  readonly #progress: (load: Load) => void;

  /** @param progress gets what an open loop has done so far, once a second */
  constructor(port: number, application: Application, seed: number, progress: (load: Load) => void) {
    this.#thread = new Worker(new URL("./thread.ts", import.meta.url), { workerData: { port, application, seed } });
    this.#progress = progress;
  }

  async load(order: Exclude<Order, { kind: "findings" }>): Promise<Load> {
    const reply = await this.#ask(order);
    if (reply.kind !== "load") throw new Error("the load generator gave no result");
    return reply.load;
  }

  async findings(): Promise<Findings> {
    const reply = await this.#ask({ kind: "findings" });
    if (reply.kind !== "findings") throw new Error("the load generator gave no findings");
    return reply;
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }

  async #ask(order: Order): Promise<Reply> {
    this.#thread.postMessage(order);
    for (;;) {
      const [reply]: Reply[] = await once(this.#thread, "message");
      if (!reply) throw new Error("the load generator gave no answer");
      if (reply.kind !== "progress") return reply;
      this.#progress(reply.load);
    }
  }
}
