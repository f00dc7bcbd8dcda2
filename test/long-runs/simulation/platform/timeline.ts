import type { Dice } from "../../dice.ts";

interface Task {
  at: number;
  /** Decides between tasks of one moment. */
  lot: number;
  run(): void;
  isCancelled: boolean;
}

/**
 * Virtual time. Nothing waits: the clock jumps to the next task, and of those that are due at one moment the seed
 * chooses. A task runs with everything that follows from it before the next one starts, so one seed is one history.
 */
export class Timeline {
  readonly #dice: Dice;
  /** The next one last. */
  readonly #tasks: Task[] = [];
  readonly #resting: (() => void)[] = [];
  /** Milliseconds since 1970-01-01 UTC. */
  now: number;
  /** Tasks run so far. */
  steps = 0;

  constructor(dice: Dice, startsAt: number) {
    this.#dice = dice;
    this.now = startsAt;
  }

  /** @returns cancels the task: time does not even jump to it */
  after(milliseconds: number, run: () => void): () => void {
    const at = this.now + Math.max(0, Math.round(milliseconds));
    const task = { at, lot: this.#dice.next(), run, isCancelled: false };
    const isLater = (other: Task) => other.at > task.at || (other.at === task.at && other.lot > task.lot);
    this.#tasks.splice(this.#tasks.findLastIndex(isLater) + 1, 0, task);
    return () => {
      task.isCancelled = true;
    };
  }

  sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => void this.after(milliseconds, resolve));
  }

  /** Waits until there is nothing more to do. */
  rest(): Promise<void> {
    return new Promise((resolve) => this.#resting.push(resolve));
  }

  /** Runs the next task and all that follows from it at once. @returns false when there is none, and nobody waited for that */
  async step(): Promise<boolean> {
    let task = this.#tasks.pop();
    while (task?.isCancelled) task = this.#tasks.pop();
    const resting = task ? [] : this.#resting.splice(0);
    for (const wake of resting) wake();
    if (task) {
      this.steps++;
      this.now = task.at;
      task.run();
    }
    await allSettled();
    return task !== undefined || resting.length > 0;
  }
}

/** Until no promise job is left: Node runs all that are ready before it comes to this. */
export const allSettled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
