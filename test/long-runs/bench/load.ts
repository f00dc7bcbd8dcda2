import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request } from "node:http";
import { performance } from "node:perf_hooks";
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
}

/** A call and what must be true of its response. */
export interface Expectation {
  call: Call;
  /** @throws Error when the response is wrong */
  check(response: HttpResponse): void | Promise<void>;
}

/** A call that was made. */
interface Exchange extends Expectation {
  response: HttpResponse;
  /** From the start of the call to the last byte read. */
  milliseconds: number;
}

const TIMEOUT_MILLISECONDS = 60_000;

/**
 * The load generator.
 *
 * @param clients connections; each makes its next call when its last one was answered
 */
export async function send(
  port: number,
  clients: number,
  expectations: readonly Expectation[],
): Promise<{ exchanges: Exchange[]; seconds: number }> {
  const exchanges: Exchange[] = [];
  const startedAt = performance.now();
  const queue = expectations.values();
  const client = async () => {
    for (const expectation of queue) {
      const calledAt = performance.now();
      const response = await sendCall(port, expectation.call);
      exchanges.push({ ...expectation, response, milliseconds: performance.now() - calledAt });
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return { exchanges, seconds: (performance.now() - startedAt) / 1000 };
}

/** Each client has a connection, which it keeps for its next burst. */
const agent = new Agent({ keepAlive: true, maxFreeSockets: 1024, scheduling: "fifo" });

const noResponse = (why: string): HttpResponse => ({ status: 0, body: why });

async function sendCall(port: number, call: Call): Promise<HttpResponse> {
  const signal = AbortSignal.timeout(TIMEOUT_MILLISECONDS);
  const sent = request({ agent, host: "127.0.0.1", port, signal, ...call });
  try {
    sent.end(call.body);
    const [response]: IncomingMessage[] = await once(sent, "response");
    if (!response) throw new Error("no response");
    const body = Buffer.concat(await response.toArray()).toString();
    return { status: response.statusCode ?? 0, body };
  } catch (error) {
    if (signal.aborted) return noResponse("no response in time");
    // workerd closed the idle connection at the moment it was used again (Node: `request.reusedSocket`).
    const isUnsent = error instanceof Error && "code" in error && error.code === "ECONNRESET" && sent.reusedSocket;
    return isUnsent ? sendCall(port, call) : noResponse(String(error));
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
