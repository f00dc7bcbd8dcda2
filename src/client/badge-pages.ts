import type { BadgePage, ListedBadge } from "./answers.ts";

/**
 * The pages of a list, oldest badge first, fetched as they are asked for. Every badge that exists when paging starts
 * comes exactly once. Each `for await` starts at the beginning.
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

  /** The badges themselves, page by page. */
  async *badges(): AsyncGenerator<ListedBadge, void, void> {
    for await (const page of this) yield* page.badges;
  }
}
