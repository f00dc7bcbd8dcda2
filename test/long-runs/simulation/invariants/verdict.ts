/** What the service promised and did not keep. */
export interface Breach {
  /** The promise, as a sentence. */
  invariant: string;
  detail: string;
}

/** Keeps the first breach: what follows one is often its consequence. Checks may stand inside calls of the service. */
export class Verdict {
  breach: Breach | null = null;

  /** @param details what shows the breach */
  expect(isKept: boolean, invariant: string, ...details: unknown[]): void {
    if (isKept || this.breach !== null) return;
    const shown = details.map((detail) => (typeof detail === "string" ? detail : JSON.stringify(detail)));
    this.breach = { invariant, detail: shown.join(" ") };
  }
}
