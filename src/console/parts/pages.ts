import type { ServerClient } from "../../client/index.ts";

/** A page of a list. */
export interface Part<Item> {
  items: readonly Item[];
  isLast: boolean;
}

export type OpenList<Item> = (server: ServerClient, signal: AbortSignal) => AsyncIterable<Part<Item>>;

/** The pages of a list from the client. */
export async function* pagesOf<Page extends { nextCursor: string | null }, Item>(
  pages: AsyncIterable<Page>,
  itemsOf: (page: Page) => readonly Item[],
): AsyncGenerator<Part<Item>, void, void> {
  for await (const page of pages) yield { items: itemsOf(page), isLast: page.nextCursor === null };
}

/** Concatenates lists. */
export async function* inTurn<Item>(
  lists: readonly AsyncIterable<Part<Item>>[],
): AsyncGenerator<Part<Item>, void, void> {
  for (const [place, list] of lists.entries()) {
    for await (const { items, isLast } of list) yield { items, isLast: isLast && place === lists.length - 1 };
  }
}
