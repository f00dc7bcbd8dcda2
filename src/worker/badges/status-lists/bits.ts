import { base64url } from "jose";
import { STATUS_BITS, STATUS_LIST_ENTRIES } from "../../../shared/limits/status-list-limits.ts";

/** Values of a status list (contract section 14; draft-ietf-oauth-status-list-20 section 7.1). */
export const VALID = 0;
export const INVALID = 1;
export const SUSPENDED = 2;

type StatusValue = typeof VALID | typeof INVALID | typeof SUSPENDED;

/** Two bits per entry, with the first entry in the lowest bits (draft-ietf-oauth-status-list-20 section 4.1). */
type StatusBits = Uint8Array<ArrayBuffer>;

const ENTRIES_PER_BYTE = 8 / STATUS_BITS;
const MASK = 2 ** STATUS_BITS - 1;

/** A list in which every badge is active. */
export const validBits = (): StatusBits => new Uint8Array(STATUS_LIST_ENTRIES / ENTRIES_PER_BYTE);

export function setStatus(bits: StatusBits, index: number, value: StatusValue): void {
  const byte = Math.floor(index / ENTRIES_PER_BYTE);
  const shift = (index % ENTRIES_PER_BYTE) * STATUS_BITS;
  bits[byte] = ((bits[byte] ?? 0) & ~(MASK << shift)) | (value << shift);
}

/** @returns `lst` as the draft requires it: zlib (RFC 1950), base64url */
export async function packBits(bits: StatusBits): Promise<string> {
  return base64url.encode(await piped(bits, new CompressionStream("deflate")));
}

export async function unpackBits(lst: string): Promise<StatusBits> {
  return new Uint8Array(await piped(new Uint8Array(base64url.decode(lst)), new DecompressionStream("deflate")));
}

const piped = (bytes: StatusBits, through: CompressionStream | DecompressionStream): Promise<Uint8Array> =>
  new Response(new Blob([bytes]).stream().pipeThrough(through)).bytes();
