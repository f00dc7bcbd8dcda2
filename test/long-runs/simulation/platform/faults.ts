import type { Dice } from "../../dice.ts";

/**
 * What can go wrong with a call. `before`: it fails without an effect. `after`: it takes effect, then fails. `late`: it
 * fails, and takes effect a while later. `silent`: it never settles, and takes effect at once, a while later or not at all;
 * nobody ends its caller, so the service's own deadline must. `death-before`, `death-after`: its caller dies at that moment.
 * `twice`: it arrives a second time.
 */
export type Fault = "before" | "after" | "late" | "silent" | "death-before" | "death-after" | "twice";

/** Where a call can go wrong, and how. */
const POSSIBLE = {
  d1: ["before", "after", "late", "silent", "death-before", "death-after"],
  object: ["before", "after", "late", "silent", "death-before", "death-after", "twice"],
  queue: ["before", "after", "late", "silent", "death-before", "death-after", "twice"],
  // On its way from the queue to a consumer. `before`: it is lost.
  message: ["before", "late", "twice"],
  network: ["before", "after", "silent", "death-before", "death-after"],
  // Between a client and the service. `after`: the response is lost.
  client: ["before", "after"],
  alarm: ["before", "late", "twice"],
} as const satisfies Record<string, readonly Fault[]>;

export type Part = keyof typeof POSSIBLE;

/** How often, of all calls. */
const RATES = [0.004, 0.015, 0.05, 0.15] as const;

/** Which faults there are, and how often: another mixture for every seed, so that rare ones meet undisturbed. */
export class Faults {
  readonly #dice: Dice;
  readonly #rates: ReadonlyMap<string, ReadonlyMap<Fault, number>>;
  readonly #away = new Set<Part>();
  /** Whether anything may go wrong at this moment. */
  isOn = false;
  /** How many faults and consequences of faults the service has met so far. */
  struck = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
    const share = dice.oneOf([0, 0.15, 0.4, 0.8] as const);
    this.#rates = new Map(
      Object.entries(POSSIBLE).map(([part, faults]) => {
        const chosen = faults.filter(() => dice.chance(share));
        return [part, new Map(chosen.map((fault) => [fault, dice.oneOf(RATES)]))];
      }),
    );
  }

  /** While a part is away, every call of it fails without an effect. */
  setAway(part: Part, isAway: boolean): void {
    if (isAway) this.#away.add(part);
    else this.#away.delete(part);
  }

  /** What goes wrong with one call; nothing, mostly. */
  draw(part: Part): Fault | null {
    const fault = this.isOn ? this.#choose(part) : null;
    if (fault) this.struck++;
    return fault;
  }

  #choose(part: Part): Fault | null {
    if (this.#away.has(part)) return "before";
    for (const [fault, rate] of this.#rates.get(part) ?? []) if (this.#dice.chance(rate)) return fault;
    return null;
  }

  /** In words, for the trace. */
  toString(): string {
    const parts = [...this.#rates].map(([part, rates]) => {
      const words = [...rates].map(([fault, rate]) => `${fault} ${rate}`);
      return words.length === 0 ? "" : `${part} (${words.join(", ")})`;
    });
    return parts.filter((words) => words !== "").join("; ") || "none";
  }
}
