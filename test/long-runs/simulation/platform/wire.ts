import type { Dice } from "../../dice.ts";
import { Member } from "../member.ts";
import { requireProcess } from "./process.ts";

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
const POSSIBLE = {
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

const SHARES = [0, 0.15, 0.4, 0.8] as const;
const RATES = [0.004, 0.015, 0.05, 0.15] as const;
const SLOWNESS = [0, 0, 0.02, 0.1] as const;
/**
 * How long a call that fails may take to have its effect all the same, in milliseconds: mostly while its caller still tries again,
 * sometimes when others have long decided otherwise.
 */
const LATE_MILLISECONDS = [30_000, 30_000, 600_000] as const;

/** Which faults there are, and how often: another mixture for every seed, so that rare ones meet undisturbed. */
export class Faults {
  readonly #dice: Dice;
  /** By part and fault, of all calls; the only faults of this seed. */
  readonly rates: Record<string, number> = {};
  /** While a part is away, every call of it fails without an effect. */
  readonly away = new Set<Part>();
  isOn = false;
  /** How many faults and consequences of faults the service has met so far. */
  struck = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
    const share = dice.oneOf(SHARES);
    for (const [part, faults] of Object.entries(POSSIBLE)) {
      const chosen = faults.filter(() => dice.chance(share));
      for (const fault of chosen) this.rates[`${part} ${fault}`] = dice.oneOf(RATES);
    }
  }

  draw(part: Part): Fault | null {
    if (!this.isOn) return null;
    const strikes = (fault: Fault) => this.#dice.chance(this.rates[`${part} ${fault}`] ?? 0);
    const drawn = this.away.has(part) ? "before" : POSSIBLE[part].find(strikes);
    if (drawn) this.struck++;
    return drawn ?? null;
  }
}

export const MAX_DELAY_MILLISECONDS = 8000;

/**
 * Carries calls between processes and the platform. Every way takes time, so the seed chooses at every call who comes
 * first, and every call can go wrong.
 */
export class Wire extends Member {
  readonly #dice = this.world.dice.of("wire");
  readonly #slowness = this.#dice.oneOf(SLOWNESS);

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
   * One call of the process whose code is running. Never settles when it dies meanwhile, or when the call is a silent one.
   *
   * @param call `what` is for the trace; `effect` takes the call at its target; `error`: what the caller sees when it fails
   */
  async call<Result>({
    part,
    what,
    effect,
    error,
  }: {
    part: Part;
    what: string;
    effect(): Result | Promise<Result>;
    error(): Error;
  }): Promise<Result> {
    const { timeline, faults, trace } = this.world;
    const caller = requireProcess();
    const gate = caller.gate();
    if (gate) await gate;
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
        timeline.after(this.#dice.below(this.#dice.oneOf(LATE_MILLISECONDS)), () => take(() => {}));
      }
      if (effectAt === "twice") arrive();
      if (effectAt === "soon" || effectAt === "twice") arrive();
      else this.carry(end);
    });
  }
}
