import * as z from "zod";
import { viewHistory } from "../../shared/history.ts";
import type { historyPage } from "../../shared/history-page.ts";
import type { Context } from "../context.ts";
import { cursorCodec } from "../cursor.ts";
import { type HistoryQuery, listHistory } from "../storage/history.ts";

type HistoryView = z.infer<typeof historyPage>["history"][number];

/** Cursors have the ID of a page's last row. */
export const HISTORY_CURSOR = cursorCodec("history", z.string());

/** @returns a page of the history, newest first, and the ID after which the next page starts */
export async function pageHistory(
  { db }: Context,
  query: HistoryQuery,
): Promise<{ history: HistoryView[]; next: string | null }> {
  const { items, last } = await listHistory(db, query);
  return { history: items.map(viewHistory), next: last?.id ?? null };
}
