import type { Context } from "./context.ts";
import { log } from "./log.ts";
import { Unavailable, withDeadline } from "./platform.ts";
import { createParts, type SweepCounts, type SweepPart } from "./sweep-parts.ts";

/** What one sweep does in one home. */
export class HomeSweep {
  readonly #context: Context;
  readonly #parts = createParts();
  readonly #done: SweepCounts = {
    eventsReleased: 0,
    eventsWoken: 0,
    badgesExpired: 0,
    blocksFinished: 0,
    restorationsNoticed: 0,
    invitationsExpired: 0,
    numbersReleased: 0,
    valuesResealed: 0,
    valuesUnreadable: 0,
    chunksReconciled: 0,
    reconciliationsSkipped: 0,
    eventsDeleted: 0,
    invitationsDeleted: 0,
  };
  /** Statements of the urgent parts, when they find nothing. */
  readonly #urgentNeeds = [...this.#parts.values()].reduce(
    (sum, { isUrgent, statements }) => sum + (isUrgent ? statements : 0),
    0,
  );
  readonly #tripsBefore: number;
  /** Names of the parts that ran. */
  readonly #begun = new Set<string>();
  #statements = 0;
  /** Undefined until the urgent parts have run. */
  #urgentTook: number | undefined;
  #milliseconds = 0;
  /** Settles when `doUrgent` returns. */
  #urgent: Promise<void> = Promise.resolve();
  #isLeftAlone = false;
  #isDown = false;
  #isFinished = true;

  constructor(context: Context) {
    this.#context = context;
    this.#tripsBefore = context.db.roundTrips;
  }

  /** An upper bound on the D1 statements that the urgent parts have taken so far. */
  get urgentStatements(): number {
    return this.#urgentTook ?? this.#statements;
  }

  /** Statements of all parts so far, and those that the urgent ones still need. */
  get reservedStatements(): number {
    return this.#urgentTook === undefined ? Math.max(this.#statements, this.#urgentNeeds) : this.#statements;
  }

  /**
   * Runs one chunk of each urgent part.
   *
   * @param patienceMilliseconds how long other homes wait for this one if it is slow or its D1 hangs; then this returns, and the
   *   work goes on by itself; null: none waits
   */
  doUrgent(isUsedUp: () => boolean, patienceMilliseconds: number | null): Promise<void> {
    const urgent = [...this.#parts.values()].filter(({ isUrgent }) => isUrgent);
    const work = this.#timed(() => this.#runOnce(urgent, isUsedUp)).finally(() => {
      this.#urgentTook = this.#statements;
    });
    this.#urgent = patienceMilliseconds === null ? work : this.#waitFor(work, patienceMilliseconds);
    return this.#urgent;
  }

  async #waitFor(work: Promise<void>, patienceMilliseconds: number): Promise<void> {
    try {
      await withDeadline("home", patienceMilliseconds, () => work);
    } catch {
      this.#isLeftAlone = true;
      this.#isFinished = false;
      this.#context.defer(work.then(() => this.#writeLine()));
    }
  }

  /**
   * Runs one chunk of each part in turn, until no part finds anything or the sweep is used up; the rest waits for the next sweep.
   * So no part waits for another's backlog, and a part that fails does not stop the others.
   */
  async doRest(isUsedUp: () => boolean): Promise<void> {
    await this.#urgent;
    if (this.#isLeftAlone) return;
    await this.#timed(async () => {
      let goesOn = true;
      while (goesOn && this.#parts.size > 0) goesOn = await this.#runOnce([...this.#parts.values()], isUsedUp);
    });
    this.#writeLine();
  }

  /** One chunk of each of these parts. @returns false when it stopped before the end */
  async #runOnce(parts: readonly SweepPart[], isUsedUp: () => boolean): Promise<boolean> {
    for (const part of parts) {
      if (this.#isDown || isUsedUp()) {
        // Of a part that did not run yet nothing is known.
        if ([...this.#parts.keys()].some((name) => this.#begun.has(name))) this.#isFinished = false;
        return false;
      }
      this.#begun.add(part.name);
      await this.#run(part);
    }
    return true;
  }

  async #run({ name, statements, run }: SweepPart): Promise<void> {
    const { home, db } = this.#context;
    const tripsBefore = db.roundTrips;
    try {
      if (!(await run(this.#context, this.#done))) this.#parts.delete(name);
    } catch (error) {
      log("error", { event: "sweep-part-failed", home, part: name, error });
      this.#parts.delete(name);
      this.#isFinished = false;
      // Every other part would fail as this one did.
      this.#isDown ||= error instanceof Unavailable && error.part === "D1" && error.isOutage;
    } finally {
      this.#statements += (db.roundTrips - tripsBefore) * statements;
    }
  }

  async #timed(work: () => Promise<unknown>): Promise<void> {
    const startedAt = this.#context.now();
    await work();
    this.#milliseconds += this.#context.now() - startedAt;
  }

  /** A sweep that found nothing to do writes no line. */
  #writeLine(): void {
    const didAnything = Object.values(this.#done).some((count) => count > 0);
    if (!didAnything && this.#isFinished) return;
    const { home, db } = this.#context;
    log("info", {
      event: "sweep",
      home,
      ...this.#done,
      isFinished: this.#isFinished,
      milliseconds: this.#milliseconds,
      d1RoundTrips: db.roundTrips - this.#tripsBefore,
    });
  }
}
