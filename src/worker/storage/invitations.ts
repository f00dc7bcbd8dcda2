import * as z from "zod";
import type { ApplicationId, InvitationDigest } from "../../shared/identifiers.ts";
import type { Database } from "./database.ts";
import { SELECT_INVITATIONS } from "./group-reads.ts";
import { type InvitationRow, invitationRow } from "./rows.ts";

/** An application's invitations, those that there are. One round trip, to the primary. */
export async function findInvitations(
  db: Database,
  applicationId: ApplicationId,
  digests: readonly InvitationDigest[],
): Promise<InvitationRow[]> {
  const { results } = await db.run((d1) =>
    d1.prepare(SELECT_INVITATIONS).bind(JSON.stringify(digests), applicationId).all(),
  );
  return z.array(invitationRow).parse(results);
}
