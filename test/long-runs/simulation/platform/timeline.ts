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
  readonly #tasks: Task[] = [];
  readonly #resting: (() => void)[] = [];
  #now: number;
  #steps = 0;

  /** @param startsAt milliseconds since 1970-01-01 UTC */
  constructor(dice: Dice, startsAt: number) {
    this.#dice = dice;
    this.#now = startsAt;
  }

  /** Milliseconds since 1970-01-01 UTC. */
  get now(): number {
    return this.#now;
  }

  /** Tasks run so far. */
  get steps(): number {
    return this.#steps;
  }

  /**
   * @param milliseconds from now
   * @returns cancels the task: time does not even jump to it
   */
  after(milliseconds: number, run: () => void): () => void {
    const at = this.#now + Math.max(0, Math.round(milliseconds));
    const task = { at, lot: this.#dice.next(), run, isCancelled: false };
    this.#push(task);
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
    let task = this.#pop();
    while (task?.isCancelled) task = this.#pop();
    if (!task) return this.#wakeResting();
    this.#steps++;
    this.#now = task.at;
    task.run();
    await allSettled();
    return true;
  }

  async #wakeResting(): Promise<boolean> {
    const resting = this.#resting.splice(0);
    for (const wake of resting) wake();
    await allSettled();
    return resting.length > 0;
  }

  #push(task: Task): void {
    const tasks = this.#tasks;
    let place = tasks.push(task) - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!this.#isSooner(place, parent)) return;
      this.#swap(place, parent);
      place = parent;
    }
  }

  #pop(): Task | undefined {
    const tasks = this.#tasks;
    const last = tasks.length - 1;
    if (last > 0) this.#swap(0, last);
    const first = tasks.pop();
    for (let place = 0; ; ) {
      const left = 2 * place + 1;
      if (left >= tasks.length) return first;
      const soonest = left + 1 < tasks.length && this.#isSooner(left + 1, left) ? left + 1 : left;
      if (!this.#isSooner(soonest, place)) return first;
      this.#swap(soonest, place);
      place = soonest;
    }
  }

  #isSooner(one: number, other: number): boolean {
    const [a, b] = [this.#tasks[one], this.#tasks[other]];
    if (!a || !b) return false;
    return a.at !== b.at ? a.at < b.at : a.lot < b.lot;
  }

  #swap(one: number, other: number): void {
    const [a, b] = [this.#tasks[one], this.#tasks[other]];
    if (!a || !b) return;
    this.#tasks[one] = b;
    this.#tasks[other] = a;
  }
}

/** Until no promise job is left: Node runs all that are ready before it comes to this. */
export const allSettled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
