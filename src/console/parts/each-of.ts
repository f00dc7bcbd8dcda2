/** Works on each item, a few at once, in any order; begins none after `signal`. */
export async function eachOf<Item>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<void>,
  signal?: AbortSignal,
) {
  const waiting = [...items];
  const lane = async () => {
    for (let item = waiting.shift(); item !== undefined && !signal?.aborted; item = waiting.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}
