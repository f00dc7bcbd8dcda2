/** What the service promised and did not keep. */
export interface Breach {
  /** The promise, as a sentence. */
  invariant: string;
  detail: string;
}

/** Keeps the first breach: what follows one is often its consequence. Checks may stand inside calls of the service. */
export class Verdict {
  #breach: Breach | null = null;

  get breach(): Breach | null {
    return this.#breach;
  }

  /** @param detail is made only when it is needed */
  expect(isKept: boolean, invariant: string, detail: () => string): void {
    if (!isKept) this.#breach ??= { invariant, detail: detail() };
  }
}
