import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request } from "node:http";
import { performance } from "node:perf_hooks";
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { listenSomewhere } from "../../../src/dev/demo/listen.ts";

/** One HTTP call, ready to be sent. */
export interface Call {
  method: "GET" | "POST" | "PATCH";
  path: string;
  headers: Record<string, string>;
  body?: string;
}

interface HttpResponse {
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
  /** After which a client gives up. */
  timeoutMilliseconds?: number;
}

/** A call that was made. */
export interface Exchange extends Expectation {
  response: HttpResponse;
  /** From when the call was due to the last byte read. */
  milliseconds: number;
}

/**
 * How long a call waits for a connection. Short, so that what is sent is young: calls whose clients leave at once would keep
 * the service busy for nobody, and that would be the generator's doing.
 */
const CONNECTION_PATIENCE_MILLISECONDS = 1000;

/** The load generator. @returns `busy`: the share of the time in which it was busy; near 1 it is the bottleneck itself */
export async function send(
  { port, clients, rate, timeoutMilliseconds }: Pace,
  expectations: readonly Expectation[],
): Promise<{ exchanges: Exchange[]; seconds: number; busy: number }> {
  const exchanges: Exchange[] = [];
  const loop = performance.eventLoopUtilization();
  const startedAt = performance.now();
  const queue = expectations.entries();
  const client = async () => {
    for (const [place, expectation] of queue) {
      const dueAt = rate === undefined ? performance.now() : startedAt + (place * 1000) / rate;
      const lateness = performance.now() - dueAt;
      if (lateness < 0) await wait(-lateness);
      const response =
        lateness > CONNECTION_PATIENCE_MILLISECONDS
          ? noResponse("no connection was free in time")
          : await sendCall(port, expectation.call, timeoutMilliseconds);
      exchanges.push({ ...expectation, response, milliseconds: performance.now() - dueAt });
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const seconds = (performance.now() - startedAt) / 1000;
  return { exchanges, seconds, busy: performance.eventLoopUtilization(loop).utilization };
}

/** Each client has a connection, which it keeps for its next burst. */
const agent = new Agent({ keepAlive: true, maxFreeSockets: 1024, scheduling: "fifo" });

const noResponse = (why: string): HttpResponse => ({ status: 0, body: why, retryAfter: null });

async function sendCall(port: number, call: Call, timeoutMilliseconds = 60_000): Promise<HttpResponse> {
  const signal = AbortSignal.timeout(timeoutMilliseconds);
  const sent = request({ agent, host: "127.0.0.1", port, signal, ...call });
  try {
    sent.end(call.body);
    const [response]: IncomingMessage[] = await once(sent, "response");
    if (!response) throw new Error("no response");
    const body = Buffer.concat(await response.toArray()).toString();
    return { status: response.statusCode ?? 0, body, retryAfter: response.headers["retry-after"] ?? null };
  } catch (error) {
    if (signal.aborted) return noResponse("no response in time");
    // workerd closed the idle connection at the moment it was used again (Node: `request.reusedSocket`).
    const isUnsent = error instanceof Error && "code" in error && error.code === "ECONNRESET" && sent.reusedSocket;
    return isUnsent ? sendCall(port, call, timeoutMilliseconds) : noResponse(String(error));
  }
}

/** @returns what is wrong with the responses, in words */
export async function faultsOf(exchanges: readonly Exchange[]): Promise<string[]> {
  const checks = await Promise.allSettled(exchanges.map(async ({ check, response }) => check(response)));
  return checks.flatMap((result, place) =>
    result.status === "rejected" ? [`${exchanges[place]?.call.path}: ${result.reason}`.replaceAll(/\s+/g, " ")] : [],
  );
}

/** The peer's events have no ID. */
const badgeEvent = z.object({ id: z.string().default(""), data: z.object({ id: z.string() }) });

/** An application server that takes webhooks. @param refuses whether an event is answered with 500, by its ID */
export async function startReceiver(refuses: (eventId: string) => boolean = () => false) {
  const arrived = new Map<string, Map<string, number>>();
  const server = createServer(async (request, response) => {
    const path = request.url?.slice(1) ?? "";
    const body = await request.toArray().catch(() => null);
    // The service was killed while it sent.
    if (body === null) return void response.destroy();
    const { id, data } = badgeEvent.parse(JSON.parse(Buffer.concat(body).toString()));
    const isRefused = refuses(id);
    const known = arrived.get(path) ?? new Map<string, number>();
    if (!isRefused) arrived.set(path, known.set(data.id, (known.get(data.id) ?? 0) + 1));
    response.writeHead(isRefused ? 500 : 204).end();
  });
  const origin = await listenSomewhere(server);
  return {
    /** @param path tells senders apart */
    url: (path: string): string => `${origin}/${path}`,
    /** By path: how many webhooks it has taken of each badge. */
    arrivals: (path: string): ReadonlyMap<string, number> => arrived.get(path) ?? new Map(),
    close: () => void server.close().closeAllConnections(),
  };
}
