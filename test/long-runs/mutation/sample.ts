import { Random } from "../chaos/random.ts";
import type { Mutant } from "./mutants.ts";

/**
 * Draws mutants evenly over the files, so that a short file counts as much as a long one: one of each in turn, until
 * there are enough, in this order: who stops early has an even draw, too. The same seed draws the same ones of a file, whatever the other files are.
 */
export function draw(mutants: readonly Mutant[], count: number, seed: number): Mutant[] {
  const piles = [...Map.groupBy(mutants, ({ file }) => file).values()].map((pile) => shuffled(pile, new Random(seed)));
  const drawn: Mutant[] = [];
  for (let round = 0; drawn.length < Math.min(count, mutants.length); round++) {
    drawn.push(...piles.flatMap((pile) => pile.slice(round, round + 1)).slice(0, count - drawn.length));
  }
  return drawn;
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, order: random.next() }))
    .sort((one, other) => one.order - other.order)
    .map(({ item }) => item);
}
