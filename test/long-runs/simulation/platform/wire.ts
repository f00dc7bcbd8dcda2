import type { Dice } from "../../dice.ts";
import type { Ground } from "../ground.ts";
import { Member } from "../member.ts";
import { type Process, requireProcess } from "./process.ts";

/**
 * What can go wrong with a call: when it takes effect, and what its caller sees. `silence`: it never settles, so the service's
 * own deadline must end it. `death`: the caller dies at that moment.
 */
const COURSES = {
  none: { effect: "soon", end: "result" },
  before: { effect: "never", end: "error" },
  after: { effect: "soon", end: "error" },
  late: { effect: "late", end: "error" },
  silent: { effect: "any", end: "silence" },
  "death-before": { effect: "never", end: "death" },
  "death-after": { effect: "soon", end: "death" },
  twice: { effect: "twice", end: "result" },
} as const;
type Fault = Exclude<keyof typeof COURSES, "none">;

/** Where a call can go wrong, and how. */
export const POSSIBLE = {
  d1: ["before", "after", "late", "silent", "death-before", "death-after", "twice"],
  object: ["before", "after", "late", "silent", "death-before", "death-after", "twice"],
  queue: ["before", "after", "late", "silent", "death-before", "death-after", "twice"],
  network: ["before", "after", "silent", "death-before", "death-after"],
  // Between a client and the service. `after`: the response is lost.
  client: ["before", "after"],
  alarm: ["before", "late", "twice"],
  // What an object has written is lost with its instance, durable although the instance dies, or durable late.
  storage: ["before", "after", "late"],
  // Another instance begins beside the one that runs, which does not know.
  instance: ["twice"],
} as const satisfies Record<string, readonly Fault[]>;

type Part = keyof typeof POSSIBLE;

type Choices = readonly [number, ...number[]];

/** What a seed chooses from: faults by part, how many of them it has, and how often one strikes, of all calls. */
export interface Mixture {
  possible: Readonly<Record<Part, readonly Fault[]>>;
  shares: Choices;
  rates: Choices;
  /** How often a way is slow. */
  slowness: Choices;
  /** How long a call that fails may take to have its effect all the same. */
  lateMilliseconds: Choices;
  /** How much later than the first the second copy of a call leaves; null: with it. */
  repeatMilliseconds: Choices | null;
}

const USUAL: Mixture = {
  ...{ possible: POSSIBLE, shares: [0, 0.15, 0.4, 0.8], rates: [0.004, 0.015, 0.05, 0.15] },
  slowness: [0, 0, 0.02, 0.1],
  // Mostly while its caller still tries again, sometimes when others have long decided otherwise.
  lateMilliseconds: [30_000, 30_000, 600_000],
  repeatMilliseconds: null,
};

/** Which faults there are, and how often: another mixture for every seed, so that rare ones meet undisturbed. */
export class Faults {
  readonly #dice: Dice;
  readonly mixture: Mixture;
  /** By part and fault, of all calls; the only faults of this seed. */
  readonly rates: Record<string, number> = {};
  /** While a part is away, every call of it fails without an effect. */
  readonly away = new Set<Part>();
  /** Whether anything may go wrong at this moment. */
  isOn = false;
  /** How many faults and consequences of faults the service has met so far. */
  struck = 0;

  constructor(dice: Dice, mixture = USUAL) {
    this.#dice = dice;
    this.mixture = mixture;
    const { possible, shares, rates } = mixture;
    const share = dice.oneOf(shares);
    for (const [part, faults] of Object.entries(possible)) {
      const chosen = faults.filter(() => dice.chance(share));
      for (const fault of chosen) this.rates[`${part} ${fault}`] = dice.oneOf(rates);
    }
  }

  /** What goes wrong with one call; nothing, mostly. */
  draw(part: Part): Fault | null {
    if (!this.isOn) return null;
    const strikes = (fault: Fault) => this.#dice.chance(this.rates[`${part} ${fault}`] ?? 0);
    const drawn = this.away.has(part) ? "before" : this.mixture.possible[part].find(strikes);
    if (drawn) this.struck++;
    return drawn ?? null;
  }
}

/** Who makes calls. The dead learn nothing. */
export type Caller = Pick<Process, "name" | "isAlive" | "die" | "gate">;

/** The longest that one way takes, in milliseconds. */
export const MAX_DELAY_MILLISECONDS = 8000;

/**
 * Carries calls between processes and the platform. Every way takes time, so the seed chooses at every call who comes
 * first, and every call can go wrong.
 */
export class Wire extends Member<Ground> {
  readonly #dice = this.world.dice.of("wire");
  readonly #slowness = this.#dice.oneOf(this.world.faults.mixture.slowness);

  /** Something on its way, which arrives whatever becomes of its sender: soon, or late where a seed has a slow network. */
  carry(arrive: () => void): void {
    const { timeline, faults } = this.world;
    const isSlow = this.#dice.chance(this.#slowness) && faults.isOn;
    const delay = this.#dice.below(isSlow ? MAX_DELAY_MILLISECONDS : 6);
    timeline.after(delay, () => {
      // Slow ways add up to more than somebody waits, who may have asked while this one was on its way.
      if (isSlow) faults.struck++;
      arrive();
    });
  }

  /**
   * One call, if nothing else is said of the process whose code is running. Never settles when it dies meanwhile, or when the
   * call is a silent one.
   *
   * @param call `what` is for the trace; `effect` takes the call at its target; `error`: what the caller sees when it fails
   */
  async call<Result>(
    call: { part: Part; what: string; effect(): Result | Promise<Result>; error(): Error },
    caller: Caller = requireProcess(),
  ) {
    const gate = caller.gate();
    if (gate) await gate;
    return this.#leave(call, caller);
  }

  #leave<Result>(
    call: { part: Part; what: string; effect(): Result | Promise<Result>; error(): Error },
    caller: Caller,
  ): Promise<Result> {
    const { part, what, effect, error } = call;
    const { timeline, faults, trace } = this.world;
    const { lateMilliseconds, repeatMilliseconds } = faults.mixture;
    return new Promise<Result>((resolve, reject) => {
      if (!caller.isAlive) return;
      const fault = faults.draw(part);
      if (fault) trace.add(caller.name, `${what}: fault ${fault}`);
      const course = COURSES[fault ?? "none"];
      const effectAt = course.effect === "any" ? this.#dice.oneOf(["never", "soon", "late"]) : course.effect;
      // Goes back, if the caller still lives then. A promise settles once: of two results the second is lost.
      const end = (outcome?: Promise<Result>) => {
        if (course.end === "death") return caller.die();
        if (course.end === "silence") return;
        this.carry(() => {
          if (!caller.isAlive) return;
          if (course.end === "result" && outcome) return resolve(outcome);
          faults.struck++;
          reject(error());
        });
      };
      const take = (then: (outcome: Promise<Result>) => void) => {
        trace.add(caller.name, what);
        const outcome = new Promise<Result>((done) => done(effect()));
        void outcome.catch(() => {}).then(() => then(outcome));
      };
      // What a dead process had sent was on its way already, or was not.
      const arrive = () => this.carry(() => (caller.isAlive || !this.#dice.chance(0.5)) && take(end));
      if (effectAt === "late") {
        timeline.after(this.#dice.below(this.#dice.oneOf(lateMilliseconds)), () => take(() => {}));
      }
      if (effectAt === "twice" && repeatMilliseconds) {
        timeline.after(this.#dice.below(this.#dice.oneOf(repeatMilliseconds)), arrive);
      } else if (effectAt === "twice") arrive();
      if (effectAt === "soon" || effectAt === "twice") arrive();
      else this.carry(end);
    });
  }
}
