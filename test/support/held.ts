import type { AroundTrip, Statement } from "./d1.ts";
import { isAbout } from "./faults.ts";

/** Trips to D1 that hang: their callers never hear of them, and D1 gets them when the test lets it, or never. */
export class HeldTrips {
  readonly #text: string;
  readonly #held: (() => Promise<unknown>)[] = [];
  #isHolding = true;

  /** @param text of the trips that hang; the empty text holds every trip */
  constructor(text = "") {
    this.#text = text;
  }

  readonly around: AroundTrip = (statements: readonly Statement[], send) => {
    if (!this.#isHolding || !isAbout(statements, this.#text)) return send();
    this.#held.push(send);
    return new Promise(() => {});
  };

  get count(): number {
    return this.#held.length;
  }

  /** From now on nothing hangs any more; what hangs already goes on hanging. */
  stop(): void {
    this.#isHolding = false;
  }

  /** D1 executes everything that hangs, in order. */
  async letThrough(): Promise<void> {
    this.stop();
    for (const send of this.#held.splice(0)) await send();
  }
}
