import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { INVITATION_STATES, type InvitationState } from "../../shared/schema.ts";
import type { Database } from "./database.ts";

/** An invitation as lists show it: neither its token nor its digest. Times are milliseconds. */
export interface ListedInvitation {
  number: number;
  state: InvitationState;
  createdAt: number;
  /** Orders invitations of one millisecond. */
  rowid: number;
  /** As they were sent. */
  expiresAt: string;
  badgeExpiresAt: string | null;
  userId: string | null;
}

const listedRows: z.ZodType<ListedInvitation[]> = z.array(
  z.object({
    number: z.number(),
    state: z.enum(INVITATION_STATES),
    createdAt: z.number(),
    rowid: z.number(),
    expiresAt: z.string(),
    badgeExpiresAt: z.string().nullable(),
    userId: z.string().nullable(),
  }),
);

/** A pending invitation past its time is shown as expired; the sweep records that within a minute. */
const SHOWN_STATE = "iif(state = 'pending' AND expires_at_time <= ?2, 'expired', state)";

const selectInvitations = (state: InvitationState | null): string => `
  SELECT number, ${SHOWN_STATE} AS state, created_at AS createdAt, rowid AS rowid, expires_at AS expiresAt,
    badge_expires_at AS badgeExpiresAt, claim_user_id AS userId
  FROM invitation
  WHERE application_id = ?1 AND (created_at, rowid) < (?3, ?4) ${state === null ? "" : `AND ${SHOWN_STATE} = '${state}'`}
  ORDER BY created_at DESC, rowid DESC LIMIT ?5`;

/**
 * An application's invitations, newest first. One round trip. With a state, invitations in other states are read and
 * skipped: there is no index by state.
 *
 * @param before the last invitation of the previous page
 */
export async function listInvitations(
  db: Database,
  applicationId: ApplicationId,
  page: { state: InvitationState | null; now: number; before: { createdAt: number; rowid: number }; limit: number },
): Promise<ListedInvitation[]> {
  const { state, now, before, limit } = page;
  const { results } = await db.run((_, d1) =>
    d1.prepare(selectInvitations(state)).bind(applicationId, now, before.createdAt, before.rowid, limit).all(),
  );
  return listedRows.parse(results);
}
