import { once } from "node:events";
import { createServer } from "node:http";
import { performance } from "node:perf_hooks";
import { Worker } from "node:worker_threads";
import { z } from "zod";
import type { Burst, BurstResult } from "./load-thread.ts";

/** The load generator: sends one burst at a time from a thread of its own. */
export class LoadGenerator {
  readonly #thread = new Worker(new URL("./load-thread.ts", import.meta.url));
  /** The largest share of a burst's time in which the generator itself was busy, from 0 to 1. */
  highestUtilization = 0;

  async send(burst: Burst): Promise<BurstResult> {
    this.#thread.postMessage(burst);
    const [result]: BurstResult[] = await once(this.#thread, "message");
    if (!result) throw new Error("the load generator gave no result");
    this.highestUtilization = Math.max(this.highestUtilization, result.utilization);
    return result;
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }
}

/** An application server that takes webhooks. */
export interface Receiver {
  /** @param path tells senders apart */
  url(path: string): string;
  /** By path: when each badge's first webhook arrived, in milliseconds of `performance.now()`. */
  arrivals(path: string): ReadonlyMap<string, number>;
  close(): void;
}

const badgeEvent = z.object({ data: z.object({ id: z.string() }) });

/** @param hangs how long it takes to respond on a path, in milliseconds */
export async function startReceiver(hangs: Readonly<Record<string, number>> = {}): Promise<Receiver> {
  const arrived = new Map<string, Map<string, number>>();
  const arrivals = (path: string) => {
    const known = arrived.get(path) ?? new Map<string, number>();
    arrived.set(path, known);
    return known;
  };
  const server = createServer(async (request, response) => {
    const path = request.url?.slice(1) ?? "";
    const { id } = badgeEvent.parse(JSON.parse(Buffer.concat(await request.toArray()).toString())).data;
    if (!arrivals(path).has(id)) arrivals(path).set(id, performance.now());
    setTimeout(() => response.writeHead(204).end(), hangs[path] ?? 0).unref();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the receiver has no port");
  return {
    url: (path) => `http://127.0.0.1:${address.port}/${path}`,
    arrivals,
    close: () => void server.close().closeAllConnections(),
  };
}
