/** A value of the kinds that can follow here. @throws Error for one of another kind */
export function expectKind<Value extends { kind: string }, Kind extends Value["kind"]>(
  value: Value,
  ...kinds: Kind[]
): Extract<Value, { kind: Kind }> {
  if (!isOfKind(value, kinds)) throw new Error(`unexpected: ${value.kind}`);
  return value;
}

const isOfKind = <Value extends { kind: string }, Kind extends Value["kind"]>(
  value: Value,
  kinds: readonly Kind[],
): value is Extract<Value, { kind: Kind }> => kinds.some((kind) => kind === value.kind);
