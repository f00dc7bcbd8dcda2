import { describe, expect, it } from "vitest";
import { createPermutation } from "../../src/worker/allocator/permutation.ts";
import { byEffort } from "../support/effort.ts";
import { fc } from "../support/random.ts";

// On Node, because it is a pure function asked some hundred thousand times; test/allocator/permutation.test.ts sees to it that
// workerd gives the same numbers.

const MAX_SIZE = Number.MAX_SAFE_INTEGER;

const KEY_BYTES = 32;
const keyOf = (seed: number) => new Uint8Array(KEY_BYTES).fill(seed);
const COUNTING_KEY = Uint8Array.from({ length: KEY_BYTES }, (_, place) => place);

const anyKey = fc.uint8Array({ minLength: KEY_BYTES, maxLength: KEY_BYTES });

/** Fails unless these indexes go to as many different places of the range. */
function expectInjective(key: Uint8Array, size: number, indexes: Iterable<number>): void {
  const asked = new Set(indexes);
  const place = createPermutation(key, size);
  const places = new Set<number>();
  for (const index of asked) {
    const found = place(index);
    const isInRange = Number.isSafeInteger(found) && found >= 0 && found < size;
    if (!isInRange) expect.fail(`size ${size}: index ${index} goes to ${found}, outside the range`);
    if (places.has(found)) expect.fail(`size ${size}: two indexes go to ${found}`);
    places.add(found);
  }
}

/** Indexes where a network over rows and columns would go wrong: both ends, row ends, the row that is not full. */
function edgeIndexes(size: number): number[] {
  const width = Math.ceil(Math.sqrt(size));
  const edges = [0, 1, 2, width - 1, width, width + 1, 2 * width, size - width, size - 2, size - 1];
  return edges.filter((index) => index >= 0 && index < size);
}

/** Every size up to this is gone through. */
const SMALL = byEffort(250, 1000);

describe("every number of a range comes exactly once (contract section 1)", () => {
  it(`every number of a range comes exactly once for every size up to ${SMALL}, and for any up to 2,000, at every index`, () => {
    for (let size = 1; size <= SMALL; size++) expectInjective(keyOf(size % 256), size, new Array(size).keys());
    fc.assert(
      fc.property(anyKey, fc.integer({ min: SMALL + 1, max: 2000 }), (key, size) =>
        expectInjective(key, size, new Array(size).keys()),
      ),
      { numRuns: byEffort(20, 400) },
    );
  });

  it("every number of a range comes exactly once for any size up to 2^53 - 1, at the edges and at random", () => {
    const anySize = fc.oneof(fc.integer({ min: 1, max: 5000 }), fc.maxSafeNat().filter(Boolean));
    fc.assert(
      fc.property(anyKey, anySize, fc.array(fc.maxSafeNat(), { maxLength: 12 }), (key, size, random) =>
        expectInjective(key, size, [...edgeIndexes(size), ...random.map((index) => index % size)]),
      ),
      { numRuns: byEffort(1000, 30_000) },
    );
  });

  it("every number of a range comes exactly once for sizes close to squares, and for the largest", () => {
    const squares = [2, 10, 3162, 2 ** 26, 94_906_265].flatMap((side) => [-1, 0, 1].map((by) => side * side + by));
    for (const size of [...squares, MAX_SIZE - 1, MAX_SIZE].filter((each) => each <= MAX_SIZE)) {
      expectInjective(COUNTING_KEY, size, edgeIndexes(size));
    }
  });
});

describe("the next number cannot be guessed from earlier ones (contract section 1)", () => {
  const size = 10_000;
  const order = Array.from({ length: size }, (_, index) => createPermutation(COUNTING_KEY, size)(index));
  const steps = order.slice(1).map((place, index) => place - (order[index] ?? 0));

  it("no distance between numbers comes much more often than chance, and numbers near in time are not correlated", () => {
    const counts = new Map<number, number>();
    for (const step of steps) counts.set(step, (counts.get(step) ?? 0) + 1);
    // 10,000 steps over 20,000 distances, small ones more often: chance gives any of them about one.
    expect(Math.max(...counts.values())).toBeLessThanOrEqual(9);
    for (const lag of [1, 2, 10, 100, 101]) {
      expect(Math.abs(correlation(order.slice(lag), order.slice(0, -lag)))).toBeLessThan(0.05);
    }
  });

  it("numbers have another order for another key", () => {
    fc.assert(
      fc.property(anyKey, fc.nat(8 * KEY_BYTES - 1), (key, bit) => {
        const other = Uint8Array.from(key);
        other[bit >> 3] = (key[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        const [ours, theirs] = [createPermutation(key, size), createPermutation(other, size)];
        const agreeing = Array.from({ length: 200 }, (_, index) => ours(index) === theirs(index)).filter(Boolean);
        // By chance two orders agree at 0.02 of 200 indexes.
        expect(agreeing.length).toBeLessThan(5);
      }),
      { numRuns: byEffort(20, 200) },
    );
  });

  /** Pearson's coefficient: 0 for unrelated series, about ±0.01 by chance for 10,000 values. */
  function correlation(left: readonly number[], right: readonly number[]): number {
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const [leftMean, rightMean] = [mean(left), mean(right)];
    const product = mean(left.map((value, index) => (value - leftMean) * ((right[index] ?? 0) - rightMean)));
    const deviation = (values: readonly number[], middle: number) =>
      Math.sqrt(mean(values.map((value) => (value - middle) ** 2)));
    return product / (deviation(left, leftMean) * deviation(right, rightMean));
  }
});
