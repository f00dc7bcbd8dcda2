import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Burst, BurstResult } from "./load-thread.ts";

/** The load generator: sends one burst at a time from its own thread. */
export class LoadGenerator {
  readonly #thread = new Worker(new URL("./load-thread.ts", import.meta.url));
  #highestUtilization = 0;

  async send(burst: Burst): Promise<BurstResult> {
    this.#thread.postMessage(burst);
    const [result]: BurstResult[] = await once(this.#thread, "message");
    if (!result) throw new Error("the load generator gave no result");
    this.#highestUtilization = Math.max(this.#highestUtilization, result.utilization);
    return result;
  }

  /** The largest share of a burst's time in which the generator itself was busy, from 0 to 1. */
  get highestUtilization(): number {
    return this.#highestUtilization;
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }
}
