import type { Context as HonoContext, MiddlewareHandler } from "hono";
import { MAX_BODY_BYTES, MAX_DRAIN_MILLISECONDS, MAX_DRAINED_BYTES } from "../../shared/limits.ts";
import { Refusal } from "../refusal.ts";
import type { HttpEnv } from "./environment.ts";

/**
 * Refuses bodies over 16 KiB, also those that do not say their length (contract section 7). The latter are read here,
 * and kept for `readBody`. Not Hono's middleware: it leaves a body that is too long half read.
 */
export const limitBody: MiddlewareHandler<HttpEnv> = (c, next) => {
  const { headers } = c.req.raw;
  const declared = headers.has("transfer-encoding") ? null : headers.get("content-length");
  if (declared === null) return readBounded(c, next);
  if (Number(declared) > MAX_BODY_BYTES) throw new Refusal("PAYLOAD_TOO_LARGE");
  return next();
};

async function readBounded(c: HonoContext<HttpEnv>, next: () => Promise<void>): Promise<void> {
  const { body } = c.req.raw;
  if (body !== null) {
    const bytes = await readUpTo(body, MAX_BODY_BYTES);
    if (bytes === null) throw new Refusal("PAYLOAD_TOO_LARGE");
    c.set("body", bytes);
  }
  return next();
}

/**
 * Reads a body that may be longer than is wanted.
 *
 * @returns null when it has more bytes; the rest is then drained
 */
async function readUpTo(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array | null> {
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.byteLength;
    if (length > maxBytes) {
      await drain(reader);
      return null;
    }
    chunks.push(value);
  }
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return bytes;
}

/**
 * Drains what nobody read of a request. The local runtime loses the connection of a request whose body was left half
 * read, and with it whatever comes next on that connection.
 *
 * @returns undefined when there is nothing to wait for
 */
export function drainUnread(request: Request): Promise<void> | undefined {
  if (request.method === "GET" || request.method === "HEAD" || request.bodyUsed) return undefined;
  return request.body === null ? undefined : drain(request.body.getReader());
}

/** Reads and discards, within bounds: a caller who sends without end is cut off. */
async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  const done = new AbortController();
  const discard = async (): Promise<void> => {
    for (let left = MAX_DRAINED_BYTES; left > 0; ) {
      const { done: isOver, value } = await reader.read();
      if (isOver) return;
      left -= value.byteLength;
    }
  };
  try {
    await Promise.race([discard(), scheduler.wait(MAX_DRAIN_MILLISECONDS, { signal: done.signal })]);
    await reader.cancel();
  } catch {
    // The caller is gone, and with it the connection.
  } finally {
    done.abort();
  }
}
