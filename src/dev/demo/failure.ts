/** The story cannot go on. Its message is one plain line for whoever reads it. */
export class DemoFailure extends Error {
  override readonly name = "DemoFailure";
}

/** Checks what the contract says. @throws DemoFailure with what was expected */
export function must(holds: boolean, expected: string): asserts holds {
  if (!holds) throw new DemoFailure(`the contract says otherwise: ${expected}`);
}
