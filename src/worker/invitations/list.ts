import type * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import type { invitationPage } from "../../shared/overview-responses.ts";
import type { InvitationState } from "../../shared/schema.ts";
import type { Context } from "../context.ts";
import { type ListedInvitation, listInvitations } from "../storage/invitation-list.ts";

/** An invitation as the application's server sees it (contract section 19): never with its token. */
export type InvitationView = z.infer<typeof invitationPage>["invitations"][number];

/** The last invitation of a page. `rowid` orders invitations of the same millisecond. */
export interface InvitationCursor {
  createdAt: number;
  rowid: number;
}

const NEWEST: InvitationCursor = { createdAt: Number.MAX_SAFE_INTEGER, rowid: Number.MAX_SAFE_INTEGER };

/** @returns a page of invitations, newest first, and the cursor of the next page; null on the last page */
export async function pageInvitations(
  context: Context,
  applicationId: ApplicationId,
  page: { state: InvitationState | null; before: InvitationCursor | null; perPage: number },
): Promise<{ invitations: InvitationView[]; next: InvitationCursor | null }> {
  const { state, before, perPage } = page;
  const rows = await listInvitations(context.db, applicationId, {
    state,
    now: context.now(),
    before: before ?? NEWEST,
    limit: perPage + 1,
  });
  const shown = rows.slice(0, perPage);
  const last = shown.at(-1);
  const next = rows.length > perPage && last ? { createdAt: last.createdAt, rowid: last.rowid } : null;
  return { invitations: shown.map(viewInvitation), next };
}

function viewInvitation(invitation: ListedInvitation): InvitationView {
  const { number, state, createdAt, expiresAt, badgeExpiresAt, userId } = invitation;
  return {
    badgeId: String(number),
    state,
    createdAt: new Date(createdAt).toISOString(),
    expiresAt,
    ...(badgeExpiresAt !== null && { badgeExpiresAt }),
    ...(userId !== null && { userId }),
  };
}
