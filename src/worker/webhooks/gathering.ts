import { GATHER_MILLISECONDS } from "../../shared/limits.ts";

/**
 * Gathers what ends at about one moment, to write it at once: until all that is awaited has come, or a moment after the
 * first of it.
 */
export class Gathering<Item> {
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

  /** Settles as the write does that has the item. */
  add(item: Item): Promise<void> {
    this.#items.push(item);
    this.#missing--;
    if (this.#missing === 0) this.#complete.resolve();
    this.#written ??= this.#writeSoon();
    return this.#written;
  }

  async #writeSoon(): Promise<void> {
    await Promise.race([this.#complete.promise, scheduler.wait(GATHER_MILLISECONDS)]);
    const items = this.#items.splice(0);
    this.#written = undefined;
    await this.#write(items);
  }
}
