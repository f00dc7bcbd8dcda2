import * as z from "zod";
import { ACTOR_KINDS } from "../../shared/actor.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { type ScannedPage, scanPage } from "./bounded-scan.ts";
import type { Database } from "./database.ts";

const nullableText = z.string().nullable();

const historyRow = z.object({
  id: z.string(),
  at: z.number(),
  action: z.string(),
  actorKind: z.enum(ACTOR_KINDS),
  actorName: nullableText,
  badge: z.number().nullable(),
  userId: nullableText,
  requestId: nullableText,
  reason: nullableText,
  detail: nullableText,
});

/** `at`: milliseconds; `detail`: JSON. */
export type HistoryRow = z.infer<typeof historyRow>;

const historyRows = z.array(historyRow);

export interface HistoryQuery {
  applicationId: ApplicationId;
  badge: number | null;
  userId: string | null;
  /** ID of the last row of the previous page. */
  after: string | null;
  perPage: number;
}

/** An application's history, newest first. One round trip; with both filters perhaps two. */
export function listHistory(db: Database, query: HistoryQuery): Promise<ScannedPage<HistoryRow>> {
  const { applicationId, badge, userId, after, perPage } = query;
  return scanPage(db, {
    table: `history ${indexOf(query)}`,
    ranges: (bind) => [
      [
        `application_id = ${bind(applicationId)}`,
        ...(badge === null ? [] : [`badge = ${bind(badge)}`]),
        ...(badge === null && userId !== null ? [`user_id = ${bind(userId)}`] : []),
        ...(after === null ? [] : [`id < ${bind(after)}`]),
      ].join(" AND "),
    ],
    order: "id DESC",
    // Few users have had the number of a badge.
    conditions: (bind) => (badge !== null && userId !== null ? [`userId = ${bind(userId)}`] : []),
    selected: `id, at, action, actor_kind AS actorKind, actor_name AS actorName, badge, user_id AS userId,
      request_id AS requestId, reason, detail`,
    columns: "*",
    rows: historyRows,
    perPage,
  });
}

function indexOf({ badge, userId }: HistoryQuery): string {
  if (badge !== null) return "INDEXED BY history_badge";
  return userId === null ? "" : "INDEXED BY history_user";
}
