import * as z from "zod";
import type { invitationPage } from "../../shared/invitation-page.ts";
import { isoTime } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { type CursorCodec, cursorCodec } from "../cursor.ts";
import {
  type InvitationPosition,
  type InvitationQuery,
  isByVisit,
  type ListedInvitation,
  listInvitations,
} from "../storage/invitation-list.ts";
import { shownTimes } from "./shown-times.ts";

/** An invitation as the application's server sees it (contract section 19): never with its token. */
type InvitationView = z.infer<typeof invitationPage>["invitations"][number];

const position = z.object({ at: z.int(), rowid: z.int() });
const NEWEST_CURSOR: CursorCodec<InvitationPosition> = cursorCodec("invitations", position);
const VISIT_CURSOR: CursorCodec<InvitationPosition> = cursorCodec("visits", position);

/** The cursors of lists with the newest first, and of lists in the order of visits. */
export const invitationCursor = (span: Pick<InvitationQuery, "from" | "until">): CursorCodec<InvitationPosition> =>
  isByVisit(span) ? VISIT_CURSOR : NEWEST_CURSOR;

/** @returns a page of invitations, and the position after which the next page starts; null on the last page */
export async function pageInvitations(
  { db, now }: Context,
  query: InvitationQuery,
): Promise<{ invitations: InvitationView[]; next: InvitationPosition | null }> {
  const { items, last } = await listInvitations(db, query, now());
  const next = last && { at: isByVisit(query) ? last.visitBeginsAt : last.createdAt, rowid: last.rowid };
  return { invitations: items.map(viewInvitation), next };
}

function viewInvitation(invitation: ListedInvitation): InvitationView {
  const { number, state, createdAt, expiresAt, name, userId } = invitation;
  return {
    badgeId: String(number),
    state,
    createdAt: isoTime(createdAt),
    expiresAt,
    ...shownTimes(invitation),
    ...(name !== null && { name }),
    ...(userId !== null && { userId }),
  };
}
