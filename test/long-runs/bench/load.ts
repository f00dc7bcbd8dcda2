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
  status: number;
  body: string;
}

/** A call and what must be true of its response. */
export interface Expectation {
  call: Call;
  /** @throws Error when the response is wrong */
  check(response: HttpResponse): void | Promise<void>;
}

const TIMEOUT_MILLISECONDS = 60_000;

/**
 * The load generator. It checks the responses after the last one.
 *
 * @param clients connections; each makes its next call when its last one was answered
 * @returns how long all took, and each from the start of the call to the last byte read
 */
export async function send(port: number, clients: number, expectations: readonly Expectation[]) {
  const exchanges: { check: Expectation["check"]; response: HttpResponse; milliseconds: number }[] = [];
  const startedAt = performance.now();
  const queue = expectations.values();
  const client = async () => {
    for (const { call, check } of queue) {
      const calledAt = performance.now();
      const response = await sendCall(port, call);
      exchanges.push({ check, response, milliseconds: performance.now() - calledAt });
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const seconds = (performance.now() - startedAt) / 1000;
  for (const { check, response } of exchanges) await check(response);
  return { times: exchanges.map(({ milliseconds }) => milliseconds), seconds };
}

/** Each client has a connection, which it keeps for its next burst. */
const agent = new Agent({ keepAlive: true, maxFreeSockets: 1024, scheduling: "fifo" });

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
    // workerd closed the idle connection at the moment it was used again (Node: `request.reusedSocket`).
    const isUnsent = error instanceof Error && "code" in error && error.code === "ECONNRESET" && sent.reusedSocket;
    if (isUnsent) return sendCall(port, call);
    throw new Error(`${call.path}: ${error}`);
  }
}

/** The peer's events have no ID. */
const badgeEvent = z.object({ id: z.string().default(""), data: z.object({ id: z.string() }) });

/** An application server that takes webhooks. @param refuses whether an event is answered with 500, by its ID */
export async function startReceiver(refuses: (eventId: string) => boolean = () => false) {
  const arrived = new Map<string, Set<string>>();
  const server = createServer(async (request, response) => {
    const path = request.url?.slice(1) ?? "";
    const body = await request.toArray().catch(() => null);
    // The service was killed while it sent.
    if (body === null) return void response.destroy();
    const { id, data } = badgeEvent.parse(JSON.parse(Buffer.concat(body).toString()));
    const isRefused = refuses(id);
    if (!isRefused) arrived.set(path, (arrived.get(path) ?? new Set()).add(data.id));
    response.writeHead(isRefused ? 500 : 204).end();
  });
  const origin = await listenSomewhere(server);
  return {
    /** @param path tells senders apart */
    url: (path: string): string => `${origin}/${path}`,
    /** The badges whose webhook has come to this path. */
    arrivals: (path: string): ReadonlySet<string> => arrived.get(path) ?? new Set(),
    close: () => void server.close().closeAllConnections(),
  };
}
