import type { Context } from "../context.ts";
import { type InvitationState, type ListedInvitation, listInvitations } from "../storage/invitation-list.ts";

/** An invitation as the application's server sees it (contract section 19): never with its token. */
export interface InvitationView {
  badgeId: string;
  state: InvitationState;
  createdAt: string;
  expiresAt: string;
  badgeExpiresAt?: string;
  /** Who claimed it. */
  userId?: string;
}

/** Where a page ended. Two invitations of one millisecond are told apart by their place. */
export interface InvitationCursor {
  createdAt: number;
  place: number;
}

const NEWEST: InvitationCursor = { createdAt: Number.MAX_SAFE_INTEGER, place: Number.MAX_SAFE_INTEGER };

/** @returns a page of invitations, newest first, and where the next begins; null when nothing follows */
export async function pageInvitations(
  context: Context,
  applicationId: string,
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
  const next = rows.length > perPage && last ? { createdAt: last.createdAt, place: last.place } : null;
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
