import type { Dice } from "../../dice.ts";

/** Few seeds need a quarter of these. One that needs more is probably in a loop. */
const MAX_STEPS = 200_000;

const LONG_MILLISECONDS = 6 * 3_600_000;

interface Task {
  at: number;
  /** Decides between tasks of one moment. */
  lot: number;
  run(): void;
}

/**
 * Virtual time. Nothing waits: the clock jumps to the next task, and of those that are due at one moment the seed
 * chooses. A task runs with everything that follows from it before the next one starts, so one seed is one history.
 */
export class Timeline {
  readonly #dice: Dice;
  /** The next one last. */
  #tasks: Task[] = [];
  /** Milliseconds since 1970-01-01 UTC. */
  now: number;
  steps = 0;

  constructor(dice: Dice, startsAt: number) {
    this.#dice = dice;
    this.now = startsAt;
  }

  /** @returns cancels the task: time does not even jump to it */
  after(milliseconds: number, run: () => void): () => void {
    const task: Task = { at: this.now + Math.max(0, Math.round(milliseconds)), lot: this.#dice.next(), run };
    const isLater = ({ at, lot }: Task) => at > task.at || (at === task.at && lot > task.lot);
    this.#tasks.splice(this.#tasks.findLastIndex(isLater) + 1, 0, task);
    return () => {
      this.#tasks = this.#tasks.filter((other) => other !== task);
    };
  }

  sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => void this.after(milliseconds, resolve));
  }

  /** Waits until nobody else has anything more to do for a long time: objects have alarms that come every day. */
  async rest(): Promise<void> {
    const isSoon = ({ at }: Task) => at <= this.now + LONG_MILLISECONDS;
    // At least a millisecond, so that a last task of this moment has its turn, whatever lot it drew.
    for (let last = this.#tasks.find(isSoon); last; last = this.#tasks.find(isSoon)) {
      await this.sleep(Math.max(1, last.at - this.now));
    }
  }

  /** Lets time pass. @throws Error when it is never enough */
  async pass(isEnough: () => boolean): Promise<void> {
    for (await allSettled(); !isEnough(); await allSettled()) this.#step();
  }

  #step(): void {
    const task = this.#tasks.pop();
    if (!task) throw new Error("everything waits for something that never comes");
    if (++this.steps > MAX_STEPS) throw new Error("it does not come to rest");
    this.now = task.at;
    task.run();
  }
}

/** Until no promise job is left: Node runs all that are ready before it comes to this. */
const allSettled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
