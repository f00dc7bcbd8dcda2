/** The checksum at the end of a zlib stream: four octets, the most significant first (RFC 1950 section 2.2). */
const CHECKSUM_BYTES = 4;
const ADLER_MODULUS = 65_521;
/** How many octets can be added before a sum could exceed 2^53. */
const ADLER_RUN_BYTES = 65_536;

/**
 * Decompresses one zlib stream (RFC 1950) of at most `maxBytes`. Null for anything else: not zlib, cut off, larger, or
 * followed by other bytes.
 */
export async function inflateZlib(
  compressed: Uint8Array<ArrayBuffer>,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  if (compressed.byteLength < CHECKSUM_BYTES) return null;
  let bytes: Uint8Array<ArrayBuffer> | null;
  try {
    bytes = await readAtMost(new Blob([compressed]).stream().pipeThrough(new DecompressionStream("deflate")), maxBytes);
  } catch {
    // Each runtime throws another error.
    return null;
  }
  if (bytes === null) return null;
  // Some runtimes ignore what follows the stream (Node 20), so the input must end with the checksum.
  const checksum = new DataView(compressed.buffer, compressed.byteOffset).getUint32(
    compressed.byteLength - CHECKSUM_BYTES,
  );
  return adler32(bytes) === checksum ? bytes : null;
}

/** Stops reading at the limit: a kilobyte of zlib can hold a megabyte. */
async function readAtMost(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const bytes = new Uint8Array(maxBytes);
  let length = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return bytes.slice(0, length);
    if (length + value.byteLength > maxBytes) {
      await reader.cancel();
      return null;
    }
    bytes.set(value, length);
    length += value.byteLength;
  }
}

/** RFC 1950 section 8.2. */
function adler32(bytes: Uint8Array): number {
  let low = 1;
  let high = 0;
  for (let start = 0; start < bytes.length; start += ADLER_RUN_BYTES) {
    for (const byte of bytes.subarray(start, start + ADLER_RUN_BYTES)) {
      low += byte;
      high += low;
    }
    low %= ADLER_MODULUS;
    high %= ADLER_MODULUS;
  }
  return high * 65_536 + low;
}
