const RANDOM_BYTES = 6;
const RANDOM_VALUES = 256 ** RANDOM_BYTES;

/** A whole number from 0 to `limit - 1` (`limit` up to 2^48), each equally likely, from the platform's secure generator. */
export function randomBelow(limit: number): number {
  // Values of the last, incomplete run of `limit` would favour small remainders, so they are drawn again.
  const ceiling = RANDOM_VALUES - (RANDOM_VALUES % limit);
  for (;;) {
    const bytes = crypto.getRandomValues(new Uint8Array(RANDOM_BYTES));
    const value = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
    if (value < ceiling) return value % limit;
  }
}
