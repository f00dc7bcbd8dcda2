import { Dice } from "../dice.ts";
import { StorageFailure } from "./platform/storage.ts";
import { Timeline } from "./platform/timeline.ts";
import { Faults } from "./platform/wire.ts";

const STARTS_AT = Date.UTC(2027, 0, 15, 9);

/** Keeps the first promise that the service broke, as a sentence: what follows one is often its consequence. Checks may stand inside calls of the service. */
export class Verdict {
  breach: { invariant: string; detail: string } | null = null;

  /** @param details what shows the breach */
  expect(isKept: boolean, invariant: string, ...details: unknown[]): void {
    if (isKept || this.breach !== null) return;
    const shown = details.map((detail) => (typeof detail === "string" ? detail : JSON.stringify(detail)));
    this.breach = { invariant, detail: shown.join(" ") };
  }
}

/** What a seed's world stands on: chance, time, a trace, and what goes wrong. */
export class Ground {
  readonly dice: Dice;
  readonly timeline: Timeline;
  readonly faults: Faults;
  readonly verdict = new Verdict();
  /** Everything that happened, in order. */
  readonly traced: string[] = [];
  readonly trace = {
    /** @param who which part or actor; @param what what it did, without line breaks */
    add: (who: string, what: string): void => {
      this.traced.push(`+${((this.timeline.now - STARTS_AT) / 1000).toFixed(3)}s ${who}: ${what}`);
    },
  };

  constructor(seed: number) {
    this.dice = new Dice(seed);
    this.timeline = new Timeline(this.dice.of("timeline"), STARTS_AT);
    this.faults = new Faults(this.dice.of("faults"));
  }

  /**
   * Lets time pass until a life is over or a promise is broken.
   *
   * @returns the promise that was broken, if any was; and everything that happened, the same in two runs of one seed
   */
  async run(life: () => Promise<void>) {
    const { verdict, timeline } = this;
    const fail = (error: unknown) => {
      verdict.expect(false, "no error is left over", error instanceof Error ? error.stack : String(error));
    };
    const failUnhandled = (error: unknown) => {
      if (!(error instanceof StorageFailure)) fail(error);
    };
    process.on("unhandledRejection", failUnhandled);
    let isOver = false;
    life()
      .catch(fail)
      .finally(() => {
        isOver = true;
      });
    await timeline.pass(() => isOver || verdict.breach !== null).catch(fail);
    process.off("unhandledRejection", failUnhandled);
    return { breach: verdict.breach, history: this.traced, steps: timeline.steps };
  }
}
