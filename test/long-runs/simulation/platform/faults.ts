import type { Dice } from "../../dice.ts";

/** Where a call can go wrong. */
export const PARTS = ["d1", "object", "queue", "message", "network", "client", "alarm"] as const;
export type Part = (typeof PARTS)[number];

/**
 * What can go wrong with a call. `before`: it fails without an effect. `after`: it takes effect, then fails. `late`: it
 * fails, and takes effect a while later. `silent`: it never settles, and takes effect at once, a while later or not at all;
 * nobody ends its caller, so the service's own deadline must. `death-before`, `death-after`: its caller dies at that moment.
 * `twice`: it arrives a second time.
 */
export const FAULTS = ["before", "after", "late", "silent", "death-before", "death-after", "twice"] as const;
export type Fault = (typeof FAULTS)[number];

const POSSIBLE: Record<Part, readonly Fault[]> = {
  d1: ["before", "after", "late", "silent", "death-before", "death-after"],
  object: FAULTS,
  queue: ["before", "after", "late", "silent", "death-before", "death-after", "twice"],
  // On its way from the queue to a consumer. `before`: it is lost.
  message: ["before", "late", "twice"],
  network: ["before", "after", "silent", "death-before", "death-after"],
  // Between a client and the service. `after`: the answer is lost.
  client: ["before", "after"],
  alarm: ["before", "late", "twice"],
};

/** How often, of all calls. */
const RATES = [0.004, 0.015, 0.05, 0.15] as const;

/** Which faults there are, and how often: another mixture for every seed, so that rare ones meet undisturbed. */
export class Faults {
  readonly #dice: Dice;
  readonly #rates = new Map<Part, Map<Fault, number>>();
  readonly #away = new Set<Part>();
  #isOn = false;
  #struck = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
    const share = dice.oneOf([0, 0.15, 0.4, 0.8] as const);
    for (const part of PARTS) {
      const rates = POSSIBLE[part].filter(() => dice.chance(share)).map((fault) => [fault, dice.oneOf(RATES)] as const);
      this.#rates.set(part, new Map(rates));
    }
  }

  start(): void {
    this.#isOn = true;
  }

  stop(): void {
    this.#isOn = false;
  }

  /** While a part is away, every call of it fails without an effect. */
  setAway(part: Part, isAway: boolean): void {
    if (isAway) this.#away.add(part);
    else this.#away.delete(part);
  }

  /** Whether anything may go wrong at this moment. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** How many consequences of faults the service has met so far. */
  get struck(): number {
    return this.#struck;
  }

  /** The service meets a fault, or a consequence of one. */
  strike(): void {
    this.#struck++;
  }

  /** What goes wrong with one call; nothing, mostly. */
  draw(part: Part): Fault | null {
    if (!this.#isOn) return null;
    if (this.#away.has(part)) {
      this.strike();
      return "before";
    }
    for (const [fault, rate] of this.#rates.get(part) ?? []) {
      if (!this.#dice.chance(rate)) continue;
      this.strike();
      return fault;
    }
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
