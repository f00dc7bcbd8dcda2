/** Calls at once: fewer than the connections that a browser opens to one host, so that other calls get through. */
const AT_ONCE = 4;

/** Works on each item, four at once, in any order; begins none after `signal`. */
export async function eachOf<Item>(items: readonly Item[], work: (item: Item) => Promise<void>, signal?: AbortSignal) {
  const waiting = [...items];
  const lane = async () => {
    for (let item = waiting.shift(); item !== undefined && !signal?.aborted; item = waiting.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}
