import { Dice } from "../dice.ts";
import { Verdict } from "./invariants/verdict.ts";
import { StorageFailure } from "./platform/storage.ts";
import { Timeline } from "./platform/timeline.ts";
import { Faults, type Mixture, Wire } from "./platform/wire.ts";

const STARTS_AT = Date.UTC(2027, 0, 15, 9);

/** What any seed's world stands on: chance, time, a trace, and calls with which things go wrong. */
export class Ground {
  readonly dice: Dice;
  readonly timeline: Timeline;
  readonly faults: Faults;
  readonly wire: Wire;
  readonly verdict = new Verdict();
  /** Everything that happened, in order. */
  readonly traced: string[] = [];
  readonly trace = {
    /** @param who which part or actor; @param what what it did, without line breaks */
    add: (who: string, what: string): void => {
      this.traced.push(`+${((this.timeline.now - STARTS_AT) / 1000).toFixed(3)}s ${who}: ${what}`);
    },
  };

  /** @param mixture if not given, the usual one */
  constructor(seed: number, mixture?: Mixture) {
    this.dice = new Dice(seed);
    this.timeline = new Timeline(this.dice.of("timeline"), STARTS_AT);
    this.faults = new Faults(this.dice.of("faults"), mixture);
    this.wire = new Wire(this);
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
