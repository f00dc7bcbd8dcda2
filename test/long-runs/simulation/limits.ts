import type { Dice } from "../dice.ts";
import { replaceInSource } from "./loading.ts";

/** Limits as they are, and so small that a few rows meet them: pages, groups, entries. */
const CHOICES: Readonly<Record<string, readonly [usual: number, smallest: number, ...small: number[]]>> = {
  COPY_PAGE_ROWS: [2000, 1, 2, 3],
  REPUBLISH_PAGE_ROWS: [200, 1, 2],
  VERIFY_PAGE_ROWS: [1000, 1, 3],
  MAX_ENTRY_CHARACTERS: [128 * 1024, 300, 1500],
  MAX_PIECE_CHARACTERS: [24 * 1024, 300, 1500],
  SEND_ENTRIES: [50, 1, 2],
  MAX_GROUP_CALLS: [100, 1, 2],
};
const SMALL_SHARES = [0, 0.5, 0.9] as const;

/** Has limits that a seed chooses. Called before anything of the service is loaded. */
export function makeLimitsVariable(): void {
  const names = Object.keys(CHOICES);
  const variables = names.map((name) => ({ from: `export const ${name} = `, to: `export let ${name} = ` }));
  const set = names.map((name) => `${name} = values.${name};`);
  const setter = `export function setLimits(values) { ${set.join(" ")} }`;
  replaceInSource("shared/limits/allocator-limits.ts", variables, setter);
}

/** What `makeLimitsVariable` adds to the module. */
type SetLimits = (values: Record<string, number>) => void;
const isSetter = (found: unknown): found is SetLimits => typeof found === "function";

export async function loadLimits(): Promise<(dice: Dice) => Record<string, number>> {
  const found: unknown = Reflect.get(await import("../../../src/shared/limits/allocator-limits.ts"), "setLimits");
  if (!isSetter(found)) throw new Error("limits cannot be set");
  return (dice) => {
    const share = dice.oneOf(SMALL_SHARES);
    const values = Object.fromEntries(
      Object.entries(CHOICES).map(([name, [usual, ...small]]) => [
        name,
        dice.chance(share) ? dice.oneOf(small) : usual,
      ]),
    );
    found(values);
    return values;
  };
}
