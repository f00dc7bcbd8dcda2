/** The middle of some values; of an even number the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** @param share from 0 to 1: the value that this share of the values does not exceed (nearest rank) */
export function percentile(values: Float64Array, share: number): number {
  const sorted = values.toSorted();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Smallest and largest value that a figure may have. */
export type Interval = [number, number];

/** Standard deviations that 95 % of a normal distribution lie within. */
const DEVIATIONS = 1.96;

/**
 * The 95 % confidence interval of a median, without any assumption about the distribution: two of the values, chosen by
 * their ranks (normal approximation of the binomial distribution). Of fewer than eight values it is all of them.
 */
export function medianInterval(values: readonly number[]): Interval {
  const sorted = [...values].sort((one, other) => one - other);
  const { length } = sorted;
  const below = Math.max(0, Math.floor(length / 2 - (DEVIATIONS * Math.sqrt(length)) / 2));
  return [sorted[below] ?? Number.NaN, sorted[length - 1 - below] ?? Number.NaN];
}
