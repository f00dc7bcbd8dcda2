import type { BadgePage, ListedBadge } from "./types.ts";

/**
 * The pages of a list, oldest badge first. Each page is fetched when the iteration reaches it, and every badge that
 * existed at the start appears exactly once. Every `for await` starts from the beginning.
 */
export class BadgePages implements AsyncIterable<BadgePage> {
  readonly #fetchPage: (cursor: string | null) => Promise<BadgePage>;

  constructor(fetchPage: (cursor: string | null) => Promise<BadgePage>) {
    this.#fetchPage = fetchPage;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<BadgePage, void, void> {
    let cursor: string | null = null;
    do {
      const page: BadgePage = await this.#fetchPage(cursor);
      yield page;
      cursor = page.nextCursor;
    } while (cursor !== null);
  }

  /** Iterates over the badges of all pages. */
  async *badges(): AsyncGenerator<ListedBadge, void, void> {
    for await (const page of this) yield* page.badges;
  }
}
