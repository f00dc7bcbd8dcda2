import { COALESCE_MILLISECONDS } from "../../shared/limits.ts";

/**
 * Coalesces results that finish close together into one write: it waits until all expected results have come, or until
 * shortly after the first.
 */
export class WriteCoalescer<Item> {
  readonly #write: (items: readonly Item[]) => Promise<void>;
  readonly #complete = Promise.withResolvers<void>();
  #missing: number;
  #items: Item[] = [];
  #written: Promise<void> | undefined;

  /** @param expected how many items may come */
  constructor(expected: number, write: (items: readonly Item[]) => Promise<void>) {
    this.#missing = expected;
    this.#write = write;
  }

  /** Settles as the write that contains the item does. */
  add(item: Item): Promise<void> {
    this.#items.push(item);
    this.#missing--;
    if (this.#missing === 0) this.#complete.resolve();
    this.#written ??= this.#writeSoon();
    return this.#written;
  }

  async #writeSoon(): Promise<void> {
    await Promise.race([this.#complete.promise, scheduler.wait(COALESCE_MILLISECONDS)]);
    const items = this.#items.splice(0);
    this.#written = undefined;
    await this.#write(items);
  }
}
