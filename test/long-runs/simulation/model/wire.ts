import type { Dice } from "../../dice.ts";
import type { Timeline } from "../platform/timeline.ts";

const FAULTS = ["before", "after", "late", "silent", "twice", "death-before", "death-after"] as const;
type Fault = (typeof FAULTS)[number];
type Part = "d1" | "object";

/** Who makes calls; the dead learn nothing. */
export interface Caller {
  isAlive: boolean;
  die(): void;
}

/** SQLite's own error: D1 rolled the batch back. */
export class Refused extends Error {}

const LATE_MILLISECONDS = [4000, 12_000, 60_000, 600_000] as const;

/** Carries calls; the seed chooses what goes wrong with which, and how often. */
export class Wire {
  readonly #dice: Dice;
  readonly #timeline: Timeline;
  readonly #rates = new Map<string, number>();
  readonly #slowness: number;
  isFaulty = false;

  constructor(dice: Dice, timeline: Timeline) {
    this.#dice = dice;
    this.#timeline = timeline;
    const share = dice.oneOf([0.15, 0.4, 0.8]);
    this.#slowness = dice.oneOf([0, 0.05, 0.2]);
    for (const part of ["d1", "object"]) {
      for (const fault of FAULTS) {
        if (dice.chance(share)) this.#rates.set(`${part} ${fault}`, dice.oneOf([0.01, 0.05, 0.15, 0.3]));
      }
    }
  }

  call<T>(caller: Caller, part: Part, effect: () => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (!caller.isAlive) return;
      const fault = this.#draw(part);
      if (fault === "death-before") return caller.die();
      const settle = (end: () => void) => this.#travel(() => caller.isAlive && end());
      const fail = () => settle(() => reject(new Error("lost")));
      const take = (then: (outcome: Promise<T>) => void) => {
        const outcome = new Promise<T>((done) => done(effect()));
        void outcome.catch(() => {}).then(() => then(outcome));
      };
      if (fault === "before") return fail();
      if (fault === "late" || (fault === "silent" && this.#dice.chance(0.5))) {
        this.#timeline.after(this.#dice.below(this.#dice.oneOf(LATE_MILLISECONDS)), () => take(() => {}));
        return fault === "late" ? fail() : undefined;
      }
      if (fault === "silent") return;
      const arrive = () =>
        this.#travel(() =>
          take((outcome) => {
            if (fault === "death-after") return caller.die();
            if (fault === "after") return fail();
            settle(() => resolve(outcome));
          }),
        );
      arrive();
      if (fault === "twice") this.#timeline.after(this.#dice.below(this.#dice.oneOf([10, 8000])), arrive);
    });
  }

  #travel(arrive: () => void): void {
    const isSlow = this.isFaulty && this.#dice.chance(this.#slowness);
    this.#timeline.after(this.#dice.below(isSlow ? 8000 : 8), arrive);
  }

  #draw(part: Part): Fault | null {
    if (!this.isFaulty) return null;
    return FAULTS.find((fault) => this.#dice.chance(this.#rates.get(`${part} ${fault}`) ?? 0)) ?? null;
  }
}
