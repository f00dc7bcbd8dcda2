import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";

/**
 * A keyed permutation of `0 … size - 1` for any size from 1 to 2^53 - 1, without a table: a generalized Feistel network
 * over a rectangle just larger than the range, walked along its cycle until it lands inside (Black and Rogaway,
 * "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, sections 4 and 5). Who knows some outputs but not the key cannot
 * tell the next one, so badge numbers cannot be guessed from their neighbours (contract section 1).
 *
 * Synchronous on purpose: WebCrypto's promise would break the atomic step in which the allocator leases a number.
 */

/** Rounds of the network: as many as NIST's FF1 has, which permutes domains of the same sizes. */
const ROUNDS = 10;

export const PERMUTATION_KEY_BYTES = 32;

/**
 * @returns the function from an index to its place in the shuffled order; a bijection of `0 … size - 1` for every key
 * and size
 */
export function createPermutation(key: Uint8Array, size: number): (index: number) => number {
  if (!Number.isSafeInteger(size) || size < 1) throw new RangeError("size must be from 1 to 2^53 - 1");
  const width = Math.ceil(Math.sqrt(size));
  const height = Math.ceil(size / width);
  const lastRow = size - width * (height - 1);
  const keyed = hmac.create(sha256, key);

  return (index) => {
    if (!Number.isSafeInteger(index) || index < 0 || index >= size) throw new RangeError("index must be below size");
    let column = index % width;
    let row = (index - column) / width;
    // The rectangle has fewer than `width` cells outside the range, so one step is nearly always enough. The walk keeps
    // column and row apart because a cell outside may have a number past 2^53, where neighbours are no longer distinct.
    do [column, row] = encipher(keyed, width, height, column, row);
    while (row === height - 1 && column >= lastRow);
    return width * row + column;
  };
}

type KeyedHash = ReturnType<typeof hmac.create>;

/** One pass of the network over `width × height` cells. */
function encipher(keyed: KeyedHash, width: number, height: number, column: number, row: number): [number, number] {
  let left = column;
  let right = row;
  for (let round = 0; round < ROUNDS; round++) {
    const modulus = round % 2 === 0 ? width : height;
    const next = (left + roundFunction(keyed, width, height, round, right)) % modulus;
    left = right;
    right = next;
  }
  // After an even number of rounds the halves have their first sizes again.
  return [left, right];
}

/** 48 bits of HMAC-SHA-256 over everything that makes this round different; the moduli are below 2^27. */
function roundFunction(keyed: KeyedHash, width: number, height: number, round: number, half: number): number {
  const message = new DataView(new ArrayBuffer(16));
  message.setUint32(0, width);
  message.setUint32(4, height);
  message.setUint32(8, round);
  message.setUint32(12, half);
  const digest = keyed.clone().update(new Uint8Array(message.buffer)).digest();
  const view = new DataView(digest.buffer, digest.byteOffset, digest.byteLength);
  return view.getUint32(0) * 0x1_0000 + view.getUint16(4);
}
