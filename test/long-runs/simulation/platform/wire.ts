import { Member } from "../member.ts";
import type { Part } from "./faults.ts";
import type { Process } from "./process.ts";

/** The longest that one way takes, in milliseconds. */
export const MAX_DELAY_MILLISECONDS = 8000;
/**
 * How long a call that fails may take to have its effect all the same, in milliseconds: mostly while its caller still
 * tries again, sometimes when others have long decided otherwise.
 */
const LATE_MILLISECONDS = [30_000, 30_000, 600_000] as const;
/** What takes longer than this counts as a fault. */
const SLOW_MILLISECONDS = 1000;

/** One call of a process to a part of the platform. */
export interface Call<Result> {
  part: Part;
  /** For the trace. */
  what: string;
  /** Takes the call at its target. */
  effect(): Result | Promise<Result>;
  /** What the caller sees when the call fails. */
  error(): Error;
  /** The result in words, for the trace. */
  told?(result: Result): string;
}

/**
 * Carries calls between processes and the platform. Every way takes time, so the seed chooses at every call who comes
 * first, and every call can go wrong.
 */
export class Wire extends Member {
  readonly #dice = this.world.dice.of("wire");
  readonly #slowness = this.#dice.oneOf([0, 0, 0.02, 0.1] as const);

  /** Milliseconds that one way takes: a few, or seconds where this seed has a slow network and things still fail. */
  delay(): number {
    const isSlow = this.#dice.chance(this.#slowness) && this.world.faults.isOn;
    return this.#dice.below(isSlow ? MAX_DELAY_MILLISECONDS : 6);
  }

  /** Something on its way, which arrives whatever becomes of its sender. */
  carry(arrive: () => void): void {
    const delay = this.delay();
    this.world.timeline.after(delay, () => {
      // Slow ways add up to more than somebody waits, who may have asked while this one was on its way.
      if (delay >= SLOW_MILLISECONDS) this.world.faults.struck++;
      arrive();
    });
  }

  /** Never settles when the caller dies meanwhile, or when the call is a silent one. */
  call<Result>(caller: Process, call: Call<Result>): Promise<Result> {
    const { faults, trace } = this.world;
    return new Promise((resolve, reject) => {
      if (!caller.isAlive) return;
      const fault = faults.draw(call.part);
      if (fault) trace.add(caller.name, `${call.what}: fault ${fault}`);
      /** Brings the result back, if the caller still lives then. */
      const back = (settle: () => void) => this.carry(() => caller.isAlive && settle());
      const fail = () =>
        back(() => {
          faults.struck++;
          reject(call.error());
        });
      // A promise settles once: of two results the second is lost on it.
      const succeed = (outcome: Promise<Result>) => back(() => resolve(outcome));
      switch (fault) {
        case null:
          return this.#arrive(caller, call, succeed);
        case "before":
          return this.carry(fail);
        case "after":
          return this.#arrive(caller, call, fail);
        case "late":
          this.carry(fail);
          return this.#takeLate(caller, call);
        case "silent":
          if (this.#dice.chance(0.3)) return this.#arrive(caller, call, () => {});
          return this.#dice.chance(0.5) ? this.#takeLate(caller, call) : undefined;
        case "death-before":
          return this.carry(() => caller.die());
        case "death-after":
          return this.#arrive(caller, call, () => caller.die());
        case "twice":
          this.#arrive(caller, call, succeed);
          return this.#arrive(caller, call, succeed);
      }
    });
  }

  #arrive<Result>(caller: Process, call: Call<Result>, then: (outcome: Promise<Result>) => void): void {
    this.carry(() => {
      // What a dead process had sent was on its way already, or was not.
      if (caller.isAlive || !this.#dice.chance(0.5)) this.#take(caller, call, then);
    });
  }

  #takeLate<Result>(caller: Process, call: Call<Result>): void {
    const delay = this.#dice.below(this.#dice.oneOf(LATE_MILLISECONDS));
    this.world.timeline.after(delay, () => this.#take(caller, call, () => {}));
  }

  #take<Result>(caller: Process, call: Call<Result>, then: (outcome: Promise<Result>) => void): void {
    const { trace } = this.world;
    trace.add(caller.name, call.what);
    const outcome = new Promise<Result>((resolve) => resolve(call.effect()));
    outcome.then(
      (result) => {
        if (call.told) trace.add(caller.name, `${call.what}: ${call.told(result)}`);
        then(outcome);
      },
      () => then(outcome),
    );
  }
}
