import { Random } from "../chaos/random.ts";

/** The choices of one part of a simulation. Every part has dice of its own, so one more throw here changes nothing there. */
export class Dice extends Random {
  readonly #seed: number;

  constructor(seed: number) {
    super(seed);
    this.#seed = seed;
  }

  /** Dice for a part with this name: the same for the same seed and name. */
  of(name: string): Dice {
    let hash = this.#seed >>> 0;
    for (let index = 0; index < name.length; index++) hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193) >>> 0;
    return new Dice(hash ^ (hash >>> 15));
  }

  /** @param probability from 0 (never) to 1 (always) */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number, both ends included. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  /** One of at least one choice. */
  oneOf<T>(choices: readonly [T, ...T[]]): T {
    return this.pick(choices) ?? choices[0];
  }

  /** The choices in another order. */
  shuffled<T>(choices: readonly T[]): T[] {
    return choices
      .map((choice) => ({ choice, place: this.next() }))
      .sort((one, other) => one.place - other.place)
      .map(({ choice }) => choice);
  }
}
