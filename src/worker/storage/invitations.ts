import * as z from "zod";
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

/** Whether the application has a pending invitation of this token. One round trip, to the primary. */
export async function hasPendingInvitation(
  db: Database,
  applicationId: ApplicationId,
  digest: InvitationDigest,
): Promise<boolean> {
  const sql = "SELECT 1 FROM invitation WHERE digest = ?1 AND application_id = ?2 AND state = 'pending'";
  return (await db.rows(z.unknown(), sql, [digest, applicationId])).length > 0;
}
