import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { performance } from "node:perf_hooks";
import { setTimeout as wait } from "node:timers/promises";
import { parentPort } from "node:worker_threads";

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

/** Calls to one server. */
export interface Burst {
  port: number;
  /** Connections; each makes its next call when its last one was answered. */
  clients: number;
  calls: readonly Call[];
  /** Calls that become due in a second, whatever the server does; if not given, each is due when a connection is free. */
  rate?: number;
  /** How long a client waits for a response. */
  timeoutMilliseconds?: number;
}

export interface BurstResult {
  /** In the order of the calls. */
  responses: HttpResponse[];
  /** Milliseconds from when a call was due to the last byte read, one a call. */
  latencies: Float64Array<ArrayBuffer>;
  seconds: number;
  /** Share of the time in which this thread was busy: near 1 it would be the bottleneck itself. */
  utilization: number;
}

/** A call for which no connection became free, or to which no response came, in time. */
export const NOT_SENT: HttpResponse = { status: 0, body: "no connection was free in time", retryAfter: null };
export const GAVE_UP: HttpResponse = { status: 0, body: "no response in time", retryAfter: null };

/**
 * How long a call waits for a connection. Short, so that what is sent is young: calls whose clients leave at once would keep
 * the service busy for nobody, and that would be the generator's doing.
 */
const CONNECTION_PATIENCE_MILLISECONDS = 1000;

// The load generator has a thread of its own, so that nothing else of the run delays it.
parentPort?.on("message", async (burst: Burst) => {
  const result = await run(burst);
  parentPort?.postMessage(result, [result.latencies.buffer]);
});

/** Connections to the server of the last burst, for the next one if that is to the same. */
let connections: { key: string; agent: Agent } | undefined;

function agentFor({ port, clients }: Burst): Agent {
  const key = `${port} ${clients}`;
  if (connections?.key === key) return connections.agent;
  connections?.agent.destroy();
  connections = { key, agent: new Agent({ keepAlive: true, maxSockets: clients, scheduling: "fifo" }) };
  return connections.agent;
}

async function run(burst: Burst): Promise<BurstResult> {
  const { port, clients, calls, rate, timeoutMilliseconds } = burst;
  const agent = agentFor(burst);
  const responses: HttpResponse[] = [];
  const latencies = new Float64Array(calls.length);
  const loop = performance.eventLoopUtilization();
  const startedAt = performance.now();
  let next = 0;
  const client = async () => {
    for (let place = next++; place < calls.length; place = next++) {
      const call = calls[place];
      if (!call) break;
      const dueAt = rate === undefined ? performance.now() : startedAt + (place * 1000) / rate;
      const lateness = performance.now() - dueAt;
      if (lateness < 0) await wait(-lateness);
      const signal = timeoutMilliseconds === undefined ? undefined : AbortSignal.timeout(timeoutMilliseconds);
      const isTooLate = lateness > CONNECTION_PATIENCE_MILLISECONDS;
      responses[place] = isTooLate ? NOT_SENT : await send(agent, port, call, signal);
      latencies[place] = performance.now() - dueAt;
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const seconds = (performance.now() - startedAt) / 1000;
  const { utilization } = performance.eventLoopUtilization(loop);
  return { responses, latencies, seconds, utilization };
}

/** @param signal ends the call when its client gives up */
export async function send(agent: Agent, port: number, call: Call, signal?: AbortSignal): Promise<HttpResponse> {
  const { method, path, headers, body } = call;
  const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
  const options = { agent, host: "127.0.0.1", port, method, path, headers: { ...headers, ...length } };
  const sent = request(signal ? { ...options, signal } : options);
  try {
    sent.end(body);
    const [response]: IncomingMessage[] = await once(sent, "response");
    if (!response) throw new Error("no response");
    const text = Buffer.concat(await response.toArray()).toString();
    return { status: response.statusCode ?? 0, body: text, retryAfter: response.headers["retry-after"] ?? null };
  } catch (error) {
    if (signal?.aborted) return GAVE_UP;
    // workerd closed the idle connection at the moment it was used again (Node: `request.reusedSocket`).
    const isUnsent = error instanceof Error && "code" in error && error.code === "ECONNRESET" && sent.reusedSocket;
    return isUnsent ? send(agent, port, call, signal) : { status: 0, body: String(error), retryAfter: null };
  }
}
