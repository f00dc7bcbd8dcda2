import { AsyncLocalStorage } from "node:async_hooks";
import type { World } from "../world.ts";

const running = new AsyncLocalStorage<Process>();

/**
 * A process of the service: an isolate of the Worker, or an object. It can die between any two calls; what it waits for
 * then never comes, and what it sent may still arrive.
 */
export class Process {
  readonly name: string;
  readonly world: World;
  /** How far its clock is ahead. */
  readonly #clockErrorMilliseconds: number;
  readonly #mourners = new Set<() => void>();
  isAlive = true;

  constructor(name: string, world: World) {
    this.name = name;
    this.world = world;
    this.#clockErrorMilliseconds = world.drawClockError();
  }

  /** Milliseconds, by its own clock. */
  get now(): number {
    return this.world.timeline.now + this.#clockErrorMilliseconds;
  }

  /** Whatever starts inside belongs to this process, however long it takes. */
  run<T>(work: () => T): T {
    return running.run(this, work);
  }

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

  /** @returns forgets the wish */
  onDeath(mourner: () => void): () => void {
    this.#mourners.add(mourner);
    return () => this.#mourners.delete(mourner);
  }

  die(): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    this.world.trace.add(this.name, "dies");
    this.world.faults.struck++;
    for (const mourner of this.#mourners) mourner();
  }
}

/** The process whose code is running, if any is: the actors of a simulation belong to none. */
export const runningProcess = (): Process | undefined => running.getStore();

/** @throws Error outside every process */
export function requireProcess(): Process {
  const process = runningProcess();
  if (!process) throw new Error("only the service calls this");
  return process;
}
