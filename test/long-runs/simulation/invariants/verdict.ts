/** Keeps the first promise that the service broke, as a sentence: what follows one is often its consequence. Checks may stand inside calls of the service. */
export class Verdict {
  breach: { invariant: string; detail: string } | null = null;

  /** @param details what shows the breach */
  expect(isKept: boolean, invariant: string, ...details: unknown[]): void {
    if (isKept || this.breach !== null) return;
    const shown = details.map((detail) => (typeof detail === "string" ? detail : JSON.stringify(detail)));
    this.breach = { invariant, detail: shown.join(" ") };
  }
}
