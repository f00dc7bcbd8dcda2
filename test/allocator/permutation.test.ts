import { expect, it } from "vitest";
import { createPermutation } from "../../src/worker/allocator/permutation.ts";

// The bijection at length, by property and over large ranges: test/node/permutation.test.ts.

it("a size or an index outside the range is refused", () => {
  const key = new Uint8Array(32);
  for (const size of [0, -1, 1.5, Number.NaN, 2 ** 53]) expect(() => createPermutation(key, size)).toThrow(RangeError);
  for (const index of [-1, 100, 0.5, Number.NaN]) {
    expect(() => createPermutation(key, 100)(index)).toThrow(RangeError);
  }
});

// An object remembers how far along its order it is. Were the order of a key to change with a release, numbers that
// are out already would come again.
it.each([
  [10, [9, 5, 3, 7, 4]],
  [10_000_000, [8190397, 8732413, 8348854, 1903676, 8848891]],
  [2 ** 53 - 1, [6237847623922494, 7779402699376469, 1706156195557519, 2176916119999899, 2122116390125971]],
])("the order of %i numbers for a key is the same from release to release", (size, expected) => {
  const place = createPermutation(
    Uint8Array.from({ length: 32 }, (_, index) => index),
    size,
  );
  expect(expected.map((_, index) => place(index))).toEqual(expected);
});
