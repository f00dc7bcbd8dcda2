/** A value as JSON in ASCII. The test runner cuts long texts short, and dies of a surrogate pair that it cut in half. */
export function ascii(value: unknown): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return (JSON.stringify(value) ?? "undefined").replaceAll(/[^ -~]/g, escaped);
}

/** Calls one after the other in a few lanes, so that hundreds of them take the time of the service and not of waiting. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  handle: (item: Item) => Promise<Result>,
  lanes = 16,
): Promise<Result[]> {
  const results: Result[] = [];
  const queue = items.entries();
  const lane = async () => {
    for (const [place, item] of queue) results[place] = await handle(item);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}

export const times = (count: number): number[] => Array.from({ length: count }, (_, place) => place);

export function tally(texts: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const text of texts) counts[text] = (counts[text] ?? 0) + 1;
  return counts;
}
