import type { ApplicationId, InvitationDigest } from "../../shared/identifiers.ts";
import type { Database } from "./database.ts";
import { SELECT_INVITATIONS } from "./group-reads.ts";
import { type InvitationRow, invitationRow } from "./rows.ts";

/** An application's invitations, those that there are. One round trip, to the primary. */
export function findInvitations(
  db: Database,
  applicationId: ApplicationId,
  digests: readonly InvitationDigest[],
): Promise<InvitationRow[]> {
  return db.rows(invitationRow, SELECT_INVITATIONS, [JSON.stringify(digests), applicationId]);
}
