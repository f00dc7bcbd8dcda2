import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";

/**
 * A keyed permutation of `0 … size - 1` for any size from 1 to 2^53 - 1, without a table: a generalized Feistel network
 * over a rectangle just larger than the range, applied again until the result is inside (cycle walking: Black and Rogaway,
 * "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, sections 4 and 5). Without the key, known
 * outputs do not reveal the next one, so badge numbers cannot be guessed from their neighbours (contract section 1).
 *
 * Synchronous on purpose: decisions are pure functions, and WebCrypto returns promises.
 */

/** Rounds of the network: as many as NIST's FF1 has, which permutes domains of the same sizes. */
const ROUNDS = 10;

/** Up to this width the results of the round function are remembered: 60 KB at most. */
const MAX_MEMOIZED_WIDTH = 750;

/**
 * @returns a bijection of `0 … size - 1`, for every key and size
 */
export function createPermutation(key: Uint8Array, size: number): (index: number) => number {
  if (!Number.isSafeInteger(size) || size < 1) throw new RangeError("size must be from 1 to 2^53 - 1");
  const width = Math.ceil(Math.sqrt(size));
  const height = Math.ceil(size / width);
  const lastRow = size - width * (height - 1);
  const computed = createRoundFunction(key, width, height);
  const roundFunction = width <= MAX_MEMOIZED_WIDTH ? memoize(computed, width) : computed;

  return (index) => {
    if (!Number.isSafeInteger(index) || index < 0 || index >= size) throw new RangeError("index must be below size");
    let column = index % width;
    let row = (index - column) / width;
    // The rectangle has fewer than `width` cells outside the range, so one step is nearly always enough. The walk keeps
    // column and row apart because a cell outside may have a number past 2^53, where neighbours are no longer distinct.
    do [column, row] = encipher(roundFunction, width, height, column, row);
    while (row === height - 1 && column >= lastRow);
    return width * row + column;
  };
}

type RoundFunction = (round: number, half: number) => number;

/** Halves of a small range recur: memoizing them makes permuting the whole range 40 times faster. */
function memoize(compute: RoundFunction, width: number): RoundFunction {
  const results = new Float64Array(ROUNDS * width).fill(Number.NaN);
  return (round, half) => {
    const index = round * width + half;
    const known = results[index];
    if (known !== undefined && !Number.isNaN(known)) return known;
    const result = compute(round, half);
    results[index] = result;
    return result;
  };
}

/** One pass of the network over `width × height` cells. */
function encipher(
  roundFunction: RoundFunction,
  width: number,
  height: number,
  column: number,
  row: number,
): [number, number] {
  let left = column;
  let right = row;
  for (let round = 0; round < ROUNDS; round++) {
    const modulus = round % 2 === 0 ? width : height;
    const next = (left + roundFunction(round, right)) % modulus;
    left = right;
    right = next;
  }
  // After an even number of rounds each half has its original size again.
  return [left, right];
}

/** 48 bits of HMAC-SHA-256 over everything that makes a round different; the moduli are below 2^27. */
function createRoundFunction(key: Uint8Array, width: number, height: number): RoundFunction {
  const keyed = hmac.create(sha256, key);
  // State and buffers are reused: allocating them for each call takes twice the time of the hash.
  const state = keyed.clone();
  const message = new DataView(new ArrayBuffer(16));
  const messageBytes = new Uint8Array(message.buffer);
  const digestBytes = new Uint8Array(sha256.outputLen);
  const digest = new DataView(digestBytes.buffer);
  message.setUint32(0, width);
  message.setUint32(4, height);
  return (round, half) => {
    message.setUint32(8, round);
    message.setUint32(12, half);
    keyed._cloneInto(state).update(messageBytes).digestInto(digestBytes);
    return digest.getUint32(0) * 0x1_0000 + digest.getUint16(4);
  };
}
