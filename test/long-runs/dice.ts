/** Random choices that a seed repeats (mulberry32, public domain: small, and good enough to choose what happens next). */
export class Dice {
  readonly #seed: number;
  #state: number;

  constructor(seed: number) {
    this.#seed = seed;
    this.#state = seed >>> 0;
  }

  /** Dice for the part with this name. Each part has its own, so that one more throw here changes nothing there. */
  of(name: string): Dice {
    let hash = this.#seed >>> 0;
    for (let index = 0; index < name.length; index++) hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193) >>> 0;
    return new Dice(hash ^ (hash >>> 15));
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  }

  /** A whole number from 0 to `below` - 1. */
  below(below: number): number {
    return Math.floor(this.next() * below);
  }

  /** A whole number, both ends included. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  /** @param probability from 0 (never) to 1 (always) */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(choices: readonly T[]): T | undefined {
    return choices[this.below(choices.length)];
  }

  /** One of at least one choice. */
  oneOf<T>(choices: readonly [T, ...T[]]): T {
    return this.pick(choices) ?? choices[0];
  }

  shuffled<T>(items: readonly T[]): T[] {
    const inOrder = items.map((item) => ({ item, lot: this.next() })).sort((one, other) => one.lot - other.lot);
    return inOrder.map(({ item }) => item);
  }
}
