import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { INVITATION_STATES, type InvitationState } from "../../shared/schema.ts";
import { type ScannedPage, scanPage } from "./bounded-scan.ts";
import type { Database } from "./database.ts";

const nullableText = z.string().nullable();

const listedRow = z.object({
  number: z.number(),
  state: z.enum(INVITATION_STATES),
  createdAt: z.number(),
  /** Orders invitations of one millisecond. */
  rowid: z.number(),
  /** As they were sent, like the start and the end of the badge. */
  expiresAt: z.string(),
  badgeStartsAt: nullableText,
  badgeExpiresAt: nullableText,
  name: nullableText,
  /** Who claimed it, or who may. */
  userId: nullableText,
});

/** An invitation as lists show it: neither its token nor its digest. Times are milliseconds. */
export type ListedInvitation = z.infer<typeof listedRow>;

/** The last invitation of a page. */
export type InvitationPosition = Pick<ListedInvitation, "createdAt" | "rowid">;

const listedRows = z.array(listedRow);

/**
 * An application's invitations, newest first. One round trip.
 *
 * @param page `after`: the last invitation of the previous page; `now`: milliseconds. A pending invitation past its time is shown as
 *   expired; the object records that within a minute.
 */
export function listInvitations(
  db: Database,
  applicationId: ApplicationId,
  page: { state: InvitationState | null; after: InvitationPosition | null; perPage: number; now: number },
): Promise<ScannedPage<ListedInvitation>> {
  const { state, after, perPage, now } = page;
  return scanPage(db, {
    table: "invitation",
    selected: `*, rowid AS rowid, iif(state = 'pending' AND expires_at_time <= ${now}, 'expired', state) AS shown_state`,
    ranges: (bind) => {
      const ofApplication = `application_id = ${bind(applicationId)}`;
      const start = after && [after.createdAt, after.rowid].map(bind).join(", ");
      const from = (createdAt: string) => (start ? `AND (${createdAt}, rowid) < (${start})` : "");
      const recorded = `${ofApplication} ${state === null ? "" : `AND state = '${state}'`} ${from("created_at")}`;
      if (state !== "expired") return [recorded];
      // What expired in the last minute is not recorded yet. The plus sign keeps SQLite from walking through all pending ones.
      const due = `${ofApplication} AND state = 'pending' AND expires_at_time <= ${bind(now)} ${from("+created_at")}`;
      return [recorded, due];
    },
    order: "created_at DESC, rowid DESC",
    conditions: () => (state === "pending" ? ["shown_state = 'pending'"] : []),
    columns: `number, shown_state AS state, created_at AS createdAt, rowid, expires_at AS expiresAt,
      badge_starts_at AS badgeStartsAt, badge_expires_at AS badgeExpiresAt, name,
      coalesce(claim_user_id, user_id) AS userId`,
    rows: listedRows,
    perPage,
  });
}
