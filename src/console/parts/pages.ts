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
