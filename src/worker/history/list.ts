import * as z from "zod";
import type { historyPage } from "../../shared/overview-responses.ts";
import { isoTime } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { cursorCodec } from "../cursor.ts";
import { type HistoryQuery, type HistoryRow, listHistory } from "../storage/history.ts";

type HistoryView = z.infer<typeof historyPage>["history"][number];

/** By the ID of the last row of a page. */
export const HISTORY_CURSOR = cursorCodec("history", z.string());

/** @returns a page of what was done, newest first (contract section 23), and the ID after which the next page starts */
export async function pageHistory(
  { db }: Context,
  query: HistoryQuery,
): Promise<{ history: HistoryView[]; next: string | null }> {
  const { items, last } = await listHistory(db, query);
  return { history: items.map(viewRow), next: last?.id ?? null };
}

const storedDetail = z.record(z.string(), z.unknown());

function viewRow({
  at,
  action,
  actorKind,
  actorName,
  badge,
  userId,
  requestId,
  reason,
  detail,
}: HistoryRow): HistoryView {
  return {
    at: isoTime(at),
    action,
    actor: { kind: actorKind, ...(actorName !== null && { name: actorName }) },
    ...(badge !== null && { badgeId: String(badge) }),
    ...(userId !== null && { userId }),
    ...(requestId !== null && { requestId }),
    ...(reason !== null && { reason }),
    ...(detail !== null && { detail: storedDetail.parse(JSON.parse(detail)) }),
  };
}
