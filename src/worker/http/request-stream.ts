import { MAX_DRAIN_MILLISECONDS, MAX_DRAINED_BYTES } from "../../shared/limits.ts";

/**
 * Reads a body that may be longer than is wanted.
 *
 * @returns null when it has more bytes; the rest is then drained
 */
export async function readUpTo(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array | null> {
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
