import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request } from "node:http";
import { performance } from "node:perf_hooks";
import { setTimeout as wait } from "node:timers/promises";
import { parentPort, Worker } from "node:worker_threads";
import { z } from "zod";

/** One HTTP call, ready to be sent. */
export interface Call {
  method: "GET" | "POST" | "PATCH";
  path: string;
  headers: Record<string, string>;
  body?: string;
}

export interface HttpResponse {
  /** 0: there was none, and `body` says why. */
  status: number;
  body: string;
  /** The header `Retry-After`. */
  retryAfter: string | null;
}

/** A call and what must be true of its response. */
export interface Expectation {
  call: Call;
  /** @throws Error when the response is wrong */
  check(response: HttpResponse): void | Promise<void>;
}

/** How calls are made to one server. */
export interface Pace {
  port: number;
  /** Connections; each makes its next call when its last one was answered. */
  clients: number;
  /** Calls that become due in a second, whatever the server does; if not given, each is due when a connection is free. */
  rate?: number;
  /** How long a client waits for a response. */
  timeoutMilliseconds?: number;
}

/** A call that was made. */
export interface Exchange extends Expectation {
  response: HttpResponse;
  /** From when the call was due to the last byte read. */
  milliseconds: number;
}

interface BurstResult {
  /** In the order of the calls. */
  answers: Pick<Exchange, "response" | "milliseconds">[];
  seconds: number;
  /** Share of the time in which the generator was busy: near 1 it would be the bottleneck itself. */
  utilization: number;
}

const noResponse = (why: string): HttpResponse => ({ status: 0, body: why, retryAfter: null });

/**
 * How long a call waits for a connection. Short, so that what is sent is young: calls whose clients leave at once would keep
 * the service busy for nobody, and that would be the generator's doing.
 */
const CONNECTION_PATIENCE_MILLISECONDS = 1000;

/** The load generator: sends one burst at a time from a thread of its own, so that nothing else of the run delays it. */
export class LoadGenerator {
  readonly #thread = new Worker(new URL(import.meta.url));
  /** The largest share of a burst's time in which the generator itself was busy, from 0 to 1. */
  highestUtilization = 0;

  async send(pace: Pace, expectations: readonly Expectation[]) {
    this.#thread.postMessage({ pace, calls: expectations.map(({ call }) => call) });
    const [result]: BurstResult[] = await once(this.#thread, "message");
    if (!result) throw new Error("the load generator gave no result");
    const { answers, seconds, utilization } = result;
    this.highestUtilization = Math.max(this.highestUtilization, utilization);
    const exchanges = expectations.flatMap((expectation, place): Exchange[] => {
      const answer = answers[place];
      return answer ? [{ ...expectation, ...answer }] : [];
    });
    return { exchanges, seconds, utilization };
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }
}

// In the thread.
parentPort?.on("message", async (burst: { pace: Pace; calls: Call[] }) =>
  parentPort?.postMessage(await run(burst.pace, burst.calls)),
);

/** Connections to the server of the last burst, for the next one if that is to the same. */
let connections: { key: string; agent: Agent } | undefined;

async function run({ port, clients, rate, timeoutMilliseconds }: Pace, calls: readonly Call[]): Promise<BurstResult> {
  const key = `${port} ${clients}`;
  if (connections?.key !== key) {
    connections?.agent.destroy();
    connections = { key, agent: new Agent({ keepAlive: true, maxSockets: clients, scheduling: "fifo" }) };
  }
  const { agent } = connections;
  const answers: BurstResult["answers"] = [];
  const loop = performance.eventLoopUtilization();
  const startedAt = performance.now();
  const queue = calls.entries();
  const client = async () => {
    for (const [place, call] of queue) {
      const dueAt = rate === undefined ? performance.now() : startedAt + (place * 1000) / rate;
      const lateness = performance.now() - dueAt;
      if (lateness < 0) await wait(-lateness);
      const response =
        lateness > CONNECTION_PATIENCE_MILLISECONDS
          ? noResponse("no connection was free in time")
          : await send(agent, port, call, timeoutMilliseconds);
      answers[place] = { response, milliseconds: performance.now() - dueAt };
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const seconds = (performance.now() - startedAt) / 1000;
  return { answers, seconds, utilization: performance.eventLoopUtilization(loop).utilization };
}

/** @param timeoutMilliseconds after which the client gives up */
export async function send(
  agent: Agent,
  port: number,
  call: Call,
  timeoutMilliseconds?: number,
): Promise<HttpResponse> {
  const { method, path, headers, body } = call;
  const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
  const signal = timeoutMilliseconds === undefined ? undefined : AbortSignal.timeout(timeoutMilliseconds);
  const options = { agent, host: "127.0.0.1", port, method, path, headers: { ...headers, ...length } };
  const sent = request(signal ? { ...options, signal } : options);
  try {
    sent.end(body);
    const [response]: IncomingMessage[] = await once(sent, "response");
    if (!response) throw new Error("no response");
    const text = Buffer.concat(await response.toArray()).toString();
    return { status: response.statusCode ?? 0, body: text, retryAfter: response.headers["retry-after"] ?? null };
  } catch (error) {
    if (signal?.aborted) return noResponse("no response in time");
    // workerd closed the idle connection at the moment it was used again (Node: `request.reusedSocket`).
    const isUnsent = error instanceof Error && "code" in error && error.code === "ECONNRESET" && sent.reusedSocket;
    return isUnsent ? send(agent, port, call, timeoutMilliseconds) : noResponse(String(error));
  }
}

/** The peer's events have no ID. */
const badgeEvent = z.object({ id: z.string().default(""), data: z.object({ id: z.string() }) });

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** An application server that takes webhooks. @param refuses whether an event is answered with 500, by its ID */
export async function startReceiver(refuses: (eventId: string) => boolean = () => false) {
  const arrived = new Map<string, Map<string, number>>();
  const server = createServer(async (request, response) => {
    const path = request.url?.slice(1) ?? "";
    const { id, data } = badgeEvent.parse(JSON.parse(Buffer.concat(await request.toArray()).toString()));
    const isRefused = refuses(id);
    const known = arrived.get(path) ?? new Map<string, number>();
    if (!isRefused) arrived.set(path, known.set(data.id, (known.get(data.id) ?? 0) + 1));
    response.writeHead(isRefused ? 500 : 204).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the receiver has no port");
  return {
    /** @param path tells senders apart */
    url: (path: string): string => `http://127.0.0.1:${address.port}/${path}`,
    /** By path: how many webhooks it has taken of each badge. */
    arrivals: (path: string): ReadonlyMap<string, number> => arrived.get(path) ?? new Map(),
    close: () => void server.close().closeAllConnections(),
  };
}
