import { describe, expect, it } from "vitest";
import { createPermutation } from "../../src/worker/allocator/permutation.ts";

// The bijection at length, by property and over large ranges: test/node/permutation.test.ts.

const MAX_SIZE = Number.MAX_SAFE_INTEGER;

const KEY_BYTES = 32;
const COUNTING_KEY = Uint8Array.from({ length: KEY_BYTES }, (_, place) => place);

describe("the order for a key never changes", () => {
  // An object remembers how far along its order it is. Were the order of a key to change with a release, numbers that
  // are out already would come again.
  it.each([
    [10, [9, 5, 3, 7, 4]],
    [10_000_000, [8190397, 8732413, 8348854, 1903676, 8848891]],
    [MAX_SIZE, [6237847623922494, 7779402699376469, 1706156195557519, 2176916119999899, 2122116390125971]],
  ])("the order of %i numbers for a key is the same from release to release", (size, expected) => {
    expect(expected.map((_, index) => createPermutation(COUNTING_KEY, size)(index))).toEqual(expected);
  });
});

describe("arguments outside the range are refused", () => {
  it.each([0, -1, 1.5, Number.NaN, MAX_SIZE + 1, Number.POSITIVE_INFINITY])("a size of %d is refused", (size) => {
    expect(() => createPermutation(COUNTING_KEY, size)).toThrow(RangeError);
  });

  it.each([-1, 100, 0.5, Number.NaN, MAX_SIZE + 1])("an index of %d of a hundred is refused", (index) => {
    expect(() => createPermutation(COUNTING_KEY, 100)(index)).toThrow(RangeError);
  });
});
