/**
 * Writes concurrent items in groups: while one group is being written, the next one fills. When nothing is being written, an
 * item waits only for one turn of the event loop, so that calls that arrived together are written together. D1 runs one
 * transaction at a time, so under load a group costs little more than a single row.
 */
export class GroupCommit<Item, Result> {
  readonly #write: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #maxItems: number;
  #waiting: { item: Item; done: PromiseWithResolvers<Result> }[] = [];
  #writing = false;

  /** @param write writes all items in one transaction and returns one result per item, in the same order */
  constructor(maxItems: number, write: (items: readonly Item[]) => Promise<readonly Result[]>) {
    this.#maxItems = maxItems;
    this.#write = write;
  }

  /** Resolves with the item's result; rejects if writing its group fails. */
  add(item: Item): Promise<Result> {
    const done = Promise.withResolvers<Result>();
    this.#waiting.push({ item, done });
    if (!this.#writing) void this.#drain();
    return done.promise;
  }

  async #drain(): Promise<void> {
    this.#writing = true;
    await scheduler.wait(0);
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, this.#maxItems);
      try {
        const results = await this.#write(group.map(({ item }) => item));
        for (const [index, { done }] of group.entries()) {
          const result = results[index];
          if (result === undefined) done.reject(new Error("a group was written without a result for each item"));
          else done.resolve(result);
        }
      } catch (error) {
        for (const { done } of group) done.reject(error);
      }
    }
    this.#writing = false;
  }
}
