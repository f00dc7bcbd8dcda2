import { createPermutation, PERMUTATION_KEY_BYTES } from "../../../src/worker/allocator/permutation.ts";
import { createRandom } from "./random.ts";

/**
 * Allocation over shards, which are not built: a range is cut into disjoint sub-ranges, each with an object and a keyed
 * order of its own, and a user device belongs to one of them by the hash that names it. What is checked is that this
 * keeps the promise of contract section 1.
 */
export interface Sharded {
  issued: number;
  different: number;
  /** Devices that asked a second time and got another number. */
  changed: number;
  outOfRange: number;
  /** Devices that got none because their own shard was full. */
  refused: number;
}

export function allocateOverShards(
  range: { first: number; last: number },
  shards: number,
  devices: number,
  seed: number,
) {
  const random = createRandom(seed);
  const size = range.last - range.first + 1;
  const objects = Array.from({ length: shards }, (_, shard) => {
    const first = range.first + Math.floor((size * shard) / shards);
    const next = range.first + Math.floor((size * (shard + 1)) / shards);
    const key = Uint8Array.from({ length: PERMUTATION_KEY_BYTES }, () => Math.floor(random() * 256));
    return {
      first,
      size: next - first,
      place: createPermutation(key, next - first),
      leases: new Map<number, number>(),
    };
  });
  const ask = (device: number): number | null => {
    const object = objects[hash(device) % shards];
    if (!object) throw new Error("there is a shard for every hash");
    const { leases, first, place } = object;
    const held = leases.get(device);
    if (held !== undefined) return held;
    if (leases.size === object.size) return null;
    const number = first + place(leases.size);
    leases.set(device, number);
    return number;
  };
  const given = new Map<number, number>();
  const result: Sharded = { issued: 0, different: 0, changed: 0, outOfRange: 0, refused: 0 };
  // Every device asks twice, in no order.
  for (let call = 0; call < 2 * devices; call++) {
    const device = call < devices ? call : Math.floor(random() * devices);
    const number = ask(device);
    if (number === null) result.refused += call < devices ? 1 : 0;
    else if (given.has(device)) result.changed += given.get(device) === number ? 0 : 1;
    else given.set(device, number);
  }
  const numbers = [...given.values()];
  result.issued = numbers.length;
  result.different = new Set(numbers).size;
  result.outOfRange = numbers.filter((number) => number < range.first || number > range.last).length;
  return result;
}

/** Spreads whole numbers over 32 bits (the finalizer of MurmurHash3, public domain). */
function hash(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
