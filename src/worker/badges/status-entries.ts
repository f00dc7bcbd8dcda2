import { STATUS_BITS, STATUS_LIST_ENTRIES } from "../../shared/limits.ts";

/** Values of a status list (contract section 14; draft-ietf-oauth-status-list-20 section 7.1). An active badge has 0. */
const INVALID = 1;
const SUSPENDED = 2;

const ENTRIES_OF_BYTE = 8 / STATUS_BITS;

/**
 * Two bits an entry, the first entry in the lowest bits (draft-ietf-oauth-status-list-20 section 4.1).
 *
 * @param badges those that are not active, as the offsets of their positions in the list
 * @param indexOf from an offset to the index in the list
 */
export function packEntries(
  { ended, paused }: { ended: readonly number[]; paused: readonly number[] },
  indexOf: (offset: number) => number,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(STATUS_LIST_ENTRIES / ENTRIES_OF_BYTE);
  const add = (offset: number, value: number) => {
    const index = indexOf(offset);
    const byte = Math.floor(index / ENTRIES_OF_BYTE);
    bytes[byte] = (bytes[byte] ?? 0) | (value << ((index % ENTRIES_OF_BYTE) * STATUS_BITS));
  };
  for (const offset of ended) add(offset, INVALID);
  for (const offset of paused) add(offset, SUSPENDED);
  return bytes;
}

/** zlib (RFC 1950), as the draft requires. */
export function compress(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  return new Response(new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"))).bytes();
}
