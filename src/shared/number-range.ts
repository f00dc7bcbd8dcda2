/** A contiguous range of badge numbers, both ends included. */
export interface NumberRange {
  first: number;
  last: number;
}
