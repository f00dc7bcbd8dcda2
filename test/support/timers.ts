import { vi } from "vitest";

/** Each timer looks at the clock so often, and a step of the clock leaves them time to. */
const POLL_MILLISECONDS = 5;

/**
 * `setTimeout` and `Date` of the Worker and of its objects, moved by the test alone; `scheduler` and the platform run on.
 * Not vitest's fake timers: those fire in the test's own context, where an object may do no I/O.
 */
export class StandingTimers {
  #now = 0;
  #isStopped = false;
  readonly #pending = new Set<object>();

  /** Time stands still from here on, until `stop`. */
  constructor() {
    vi.useFakeTimers({ toFake: ["Date"] });
    vi.stubGlobal("setTimeout", (callback: () => void, milliseconds: number) => this.#set(callback, milliseconds));
    vi.stubGlobal("clearTimeout", (timer: object) => this.#pending.delete(timer));
  }

  /** Timers that are set and have not fired. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Moves time once the service waits for what the test says; whatever is due then fires. */
  async pass(milliseconds: number, isReady: () => boolean = () => true): Promise<void> {
    while (!isReady()) await scheduler.wait(1);
    this.#now += milliseconds;
    vi.setSystemTime(Date.now() + milliseconds);
    await scheduler.wait(20);
  }

  /** What is pending never fires: it would log in the test after this one. */
  stop(): void {
    this.#isStopped = true;
    vi.unstubAllGlobals();
    vi.useRealTimers();
  }

  /** Looks at the clock from the context that set the timer, so the callback runs there. */
  #set(callback: () => void, milliseconds: number): object {
    const timer = {};
    const dueAt = this.#now + milliseconds;
    this.#pending.add(timer);
    const wait = async () => {
      while (this.#now < dueAt && this.#pending.has(timer) && !this.#isStopped) await scheduler.wait(POLL_MILLISECONDS);
      if (this.#pending.delete(timer) && !this.#isStopped) callback();
    };
    void wait();
    return timer;
  }
}

/** Whether a promise has settled by now, given a moment for what is under way. */
export async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const settled = promise.then(
    () => true,
    () => true,
  );
  return Promise.race([settled, scheduler.wait(50).then(() => false)]);
}
