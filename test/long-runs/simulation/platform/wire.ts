import type { Dice } from "../../dice.ts";
import type { Trace } from "../trace.ts";
import type { Fault, Faults, Part } from "./faults.ts";
import type { Process } from "./process.ts";
import type { Timeline } from "./timeline.ts";

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
  /** The answer in words, for the trace. */
  told?(result: Result): string;
}

/**
 * Carries calls between processes and the platform. Every way takes time, so the seed chooses at every call who comes
 * first, and every call can go wrong.
 */
export class Wire {
  readonly #timeline: Timeline;
  readonly #faults: Faults;
  readonly #trace: Trace;
  readonly #dice: Dice;
  readonly #slowness: number;

  constructor(parts: { timeline: Timeline; faults: Faults; trace: Trace; dice: Dice }) {
    this.#timeline = parts.timeline;
    this.#faults = parts.faults;
    this.#trace = parts.trace;
    this.#dice = parts.dice;
    this.#slowness = parts.dice.oneOf([0, 0, 0.02, 0.1] as const);
  }

  /** Milliseconds that one way takes: a few, or seconds where this seed has a slow network and things still fail. */
  delay(): number {
    return this.#dice.chance(this.#slowness) && this.#faults.isOn
      ? this.#dice.below(MAX_DELAY_MILLISECONDS)
      : this.#dice.below(6);
  }

  /** Something on its way, which arrives whatever becomes of its sender. */
  carry(arrive: () => void): void {
    const delay = this.delay();
    this.#timeline.after(delay, () => {
      // Slow ways add up to more than somebody waits, who may have asked while this one was on its way.
      if (delay >= SLOW_MILLISECONDS) this.#faults.strike();
      arrive();
    });
  }

  /** Never settles when the caller dies meanwhile, or when the call is a silent one. */
  call<Result>(caller: Process, call: Call<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (!caller.isAlive) return;
      const fault = this.#faults.draw(call.part);
      if (fault) this.#trace.add(caller.name, `${call.what}: fault ${fault}`);
      this.#carryOut(caller, call, fault, {
        answer: (settle) => this.carry(() => caller.isAlive && settle()),
        resolve,
        reject,
      });
    });
  }

  #carryOut<Result>(caller: Process, call: Call<Result>, fault: Fault | null, to: Recipient<Result>): void {
    const fail = () => to.answer(() => this.#strike(to.reject, call));
    // A promise settles once: of two answers the second is lost on it.
    const succeed = (outcome: Promise<Result>) => to.answer(() => to.resolve(outcome));
    switch (fault) {
      case null:
        this.#arrive(caller, call, succeed);
        break;
      case "before":
        this.carry(fail);
        break;
      case "after":
        this.#arrive(caller, call, fail);
        break;
      case "late":
        this.carry(fail);
        this.#takeLate(caller, call);
        break;
      case "silent":
        if (this.#dice.chance(0.3)) this.#arrive(caller, call, () => {});
        else if (this.#dice.chance(0.5)) this.#takeLate(caller, call);
        break;
      case "death-before":
        this.carry(() => caller.die());
        break;
      case "death-after":
        this.#arrive(caller, call, () => caller.die());
        break;
      case "twice":
        this.#arrive(caller, call, succeed);
        this.#arrive(caller, call, succeed);
        break;
    }
  }

  #arrive<Result>(caller: Process, call: Call<Result>, then: (outcome: Promise<Result>) => void): void {
    this.carry(() => {
      // What a dead process had sent was on its way already, or was not.
      if (!caller.isAlive && this.#dice.chance(0.5)) return;
      this.#take(caller, call, then);
    });
  }

  #takeLate<Result>(caller: Process, call: Call<Result>): void {
    this.#timeline.after(this.#dice.below(this.#dice.oneOf(LATE_MILLISECONDS)), () =>
      this.#take(caller, call, () => {}),
    );
  }

  #take<Result>(caller: Process, call: Call<Result>, then: (outcome: Promise<Result>) => void): void {
    this.#trace.add(caller.name, call.what);
    const outcome = new Promise<Result>((resolve) => resolve(call.effect()));
    outcome.then(
      (result) => {
        if (call.told) this.#trace.add(caller.name, `${call.what}: ${call.told(result)}`);
        then(outcome);
      },
      () => then(outcome),
    );
  }

  #strike<Result>(reject: (error: Error) => void, call: Call<Result>): void {
    this.#faults.strike();
    reject(call.error());
  }
}

interface Recipient<Result> {
  /** Brings the answer back, if the caller still lives then. */
  answer(settle: () => void): void;
  resolve(result: Promise<Result>): void;
  reject(error: Error): void;
}
