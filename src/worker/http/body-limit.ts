import type { Context as HonoContext, MiddlewareHandler } from "hono";
import {
  MAX_BODY_BYTES,
  MAX_DRAIN_MILLISECONDS,
  MAX_DRAINED_BYTES,
  MAX_INVITATIONS_BODY_BYTES,
} from "../../shared/limits/request-limits.ts";
import { ApiError } from "../api-error.ts";
import { readOrReportHangUp } from "./body.ts";
import type { HttpEnv } from "./environment.ts";

/**
 * Refuses a body of more than `maxBytes`. A body without a declared length is read here and kept for `readBody`. Hono's
 * own middleware would not drain a refused body.
 */
const limitBodyTo =
  (maxBytes: number): MiddlewareHandler<HttpEnv> =>
  (c, next) => {
    const { headers } = c.req.raw;
    const declared = headers.has("transfer-encoding") ? null : headers.get("content-length");
    if (declared === null) return readBounded(c, next, maxBytes);
    if (Number(declared) > maxBytes) throw new ApiError("PAYLOAD_TOO_LARGE");
    return next();
  };

/** The limit of most bodies (contract section 7). */
export const limitBody = limitBodyTo(MAX_BODY_BYTES);

/** The limit of `POST /v1/invitations` (contract section 24). */
export const limitInvitationsBody = limitBodyTo(MAX_INVITATIONS_BODY_BYTES);

async function readBounded(c: HonoContext<HttpEnv>, next: () => Promise<void>, maxBytes: number): Promise<void> {
  const { body } = c.req.raw;
  if (body !== null) {
    const bytes = await readUpTo(body, maxBytes);
    if (bytes === null) throw new ApiError("PAYLOAD_TOO_LARGE");
    c.set("body", bytes);
  }
  return next();
}

/**
 * Reads a body of at most `maxBytes`.
 *
 * @returns null if the body is longer; the rest is then drained
 */
async function readUpTo(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | null> {
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await readOrReportHangUp(() => reader.read());
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
 * Drains an unread request body. Otherwise the local runtime closes the connection, and the next request on it is lost.
 *
 * @returns undefined if there is nothing to wait for
 */
export function drainUnread(request: Request): Promise<void> | undefined {
  if (request.bodyUsed || request.method === "GET" || request.method === "HEAD") return undefined;
  return request.body === null ? undefined : drain(request.body.getReader());
}

/** Reads and discards a bounded number of bytes, so that an endless body is cut off. */
async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  const timer = new AbortController();
  const discard = async (): Promise<void> => {
    for (let left = MAX_DRAINED_BYTES; left > 0; ) {
      const { done, value } = await reader.read();
      if (done) return;
      left -= value.byteLength;
    }
  };
  try {
    await Promise.race([discard(), scheduler.wait(MAX_DRAIN_MILLISECONDS, { signal: timer.signal })]);
    await reader.cancel();
  } catch {
    // The caller has disconnected.
  } finally {
    timer.abort();
  }
}
