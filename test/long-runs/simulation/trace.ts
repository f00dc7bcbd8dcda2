/** Lines that are kept: enough for the last steps of a failure. */
const KEPT_LINES = 20_000;

/** What happened, in order. Its digest tells whether two runs of one seed were the same. */
export class Trace {
  readonly #now: () => number;
  readonly #startedAt: number;
  #lines: string[] = [];
  #digest = 0x811c9dc5;

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
    this.#startedAt = now();
  }

  /** @param who which part or actor; @param what what it did, without line breaks */
  add(who: string, what: string): void {
    const line = `+${((this.#now() - this.#startedAt) / 1000).toFixed(3)}s ${who}: ${what}`;
    for (let index = 0; index < line.length; index++) {
      this.#digest = Math.imul(this.#digest ^ line.charCodeAt(index), 0x01000193);
    }
    this.#lines.push(line);
    if (this.#lines.length > 2 * KEPT_LINES) this.#lines = this.#lines.slice(-KEPT_LINES);
  }

  /** The last lines, oldest first. */
  last(lines: number): string[] {
    return this.#lines.slice(-lines);
  }

  get digest(): string {
    return (this.#digest >>> 0).toString(16).padStart(8, "0");
  }
}
