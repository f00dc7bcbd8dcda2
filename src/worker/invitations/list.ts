import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import type { invitationPage } from "../../shared/overview-responses.ts";
import type { InvitationState } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { type CursorCodec, cursorCodec } from "../cursor.ts";
import { type InvitationPosition, type ListedInvitation, listInvitations } from "../storage/invitation-list.ts";

/** An invitation as the application's server sees it (contract section 19): never with its token. */
type InvitationView = z.infer<typeof invitationPage>["invitations"][number];

export const INVITATION_CURSOR: CursorCodec<InvitationPosition> = cursorCodec(
  "invitations",
  z.object({ createdAt: z.int(), rowid: z.int() }),
);

/** @returns a page of invitations, newest first, and the one after which the next page starts; null on the last page */
export async function pageInvitations(
  context: Context,
  applicationId: ApplicationId,
  page: { state: InvitationState | null; after: InvitationPosition | null; perPage: number },
): Promise<{ invitations: InvitationView[]; next: InvitationPosition | null }> {
  const { items, last } = await listInvitations(context.db, applicationId, { ...page, now: context.now() });
  return { invitations: items.map(viewInvitation), next: last };
}

function viewInvitation(invitation: ListedInvitation): InvitationView {
  const { number, state, createdAt, expiresAt, badgeStartsAt, badgeExpiresAt, name, userId } = invitation;
  return {
    badgeId: String(number),
    state,
    createdAt: isoTime(createdAt),
    expiresAt,
    ...(badgeStartsAt !== null && { badgeStartsAt }),
    ...(badgeExpiresAt !== null && { badgeExpiresAt }),
    ...(name !== null && { name }),
    ...(userId !== null && { userId }),
  };
}
