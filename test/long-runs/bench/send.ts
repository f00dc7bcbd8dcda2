import { once } from "node:events";
import { type Agent, type IncomingMessage, request } from "node:http";

/** One HTTP call, ready to be sent. */
export interface Call {
  method: "GET" | "POST";
  path: string;
  headers: Record<string, string>;
  body?: string;
}

export interface Answer {
  /** 0: there was none, and `body` says why. */
  status: number;
  body: string;
  /** The header `Retry-After`. */
  retryAfter: string | null;
}

/** @param signal ends the call when its caller gives up: then there is no answer, and `body` says why */
export async function send(agent: Agent, port: number, call: Call, signal?: AbortSignal): Promise<Answer> {
  const { method, path, headers, body } = call;
  const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
  const options = { agent, host: "127.0.0.1", port, method, path, headers: { ...headers, ...length } };
  const sent = request(signal ? { ...options, signal } : options);
  try {
    sent.end(body);
    const [response]: IncomingMessage[] = await once(sent, "response");
    return response ? await read(response) : { status: 0, body: "no response", retryAfter: null };
  } catch (error) {
    // workerd gave the connection up for idle at the moment it was used again (Node: `request.reusedSocket`).
    const isUnsent = error instanceof Error && "code" in error && error.code === "ECONNRESET" && sent.reusedSocket;
    return isUnsent ? send(agent, port, call, signal) : { status: 0, body: String(error), retryAfter: null };
  }
}

async function read(response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  response.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(response, "end");
  const { statusCode = 0, headers } = response;
  return { status: statusCode, body: Buffer.concat(chunks).toString(), retryAfter: headers["retry-after"] ?? null };
}
