import { AsyncLocalStorage } from "node:async_hooks";
import { Part } from "../member.ts";

const running = new AsyncLocalStorage<Process>();

/**
 * A process of the service: an isolate of the Worker, or an object. It can die between any two calls; what it waits for
 * then never comes, and what it sent may still arrive.
 */
export class Process extends Part<string> {
  readonly name = this.subject;
  readonly #most = this.world.plan.clockErrorMilliseconds;
  readonly #clockErrorMilliseconds = this.world.clockDice.between(-this.#most, this.#most);
  readonly #death = Promise.withResolvers<void>();
  isAlive = true;
  /** What must come to an end before anything leaves this process: the output gate of an object. */
  gate: () => Promise<void> | null = () => null;
  onDeath: () => void = () => {};
  /** Since when another instance of the object runs beside this one, in milliseconds; Infinity: none does. */
  supersededAt = Number.POSITIVE_INFINITY;

  /** Milliseconds, by its own clock. */
  get now(): number {
    return this.world.timeline.now + this.#clockErrorMilliseconds;
  }

  /** Whatever starts inside belongs to this process, however long it takes. */
  run<T>(work: () => T): T {
    return running.run(this, work);
  }

  /** What comes of some work inside; when the process dies before, what comes of `death`. */
  outcome<Result, Lost>(work: () => Promise<Result>, death: () => Lost): Promise<Result | Lost> {
    const done = this.run(work).then((result) => () => result);
    return Promise.race([done, this.#death.promise.then(() => death)]).then((end) => end());
  }

  /** Work that nobody waits for: only the trace tells that it failed. */
  readonly defer = (work: Promise<unknown>): void => {
    work.catch((error) => this.world.trace.add(this.name, `deferred work failed: ${error}`));
  };

  /** Waits in virtual time, as long as it lives. */
  sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => void this.world.timeline.after(milliseconds, () => this.isAlive && resolve()));
  }

  /** `setTimeout` in virtual time. A timer that fires is a deadline that something missed. @returns clears it */
  setTimer(callback: () => void, milliseconds: number): () => void {
    return this.world.timeline.after(milliseconds, () => {
      if (!this.isAlive) return;
      this.world.faults.struck++;
      this.run(callback);
    });
  }

  die(): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    this.world.trace.add(this.name, "dies");
    this.world.faults.struck++;
    this.onDeath();
    this.#death.resolve();
  }
}

/** The process whose code is running. @throws Error if none is: the actors of a simulation belong to none */
export function requireProcess(): Process {
  const process = running.getStore();
  if (!process) throw new Error("only the service calls this");
  return process;
}
