import { sql } from "drizzle-orm";
import type { ApplicationId, InvitationDigest } from "../../shared/identifiers.ts";
import { invitation } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import type { InvitationRow } from "./rows.ts";
import { eachOf, orm, type Placeholders, statement } from "./statement.ts";

/** The plus sign keeps SQLite from searching by application, which would read all of its invitations. */
const SELECT = statement((p: Placeholders<{ applicationId: ApplicationId; digests: readonly InvitationDigest[] }>) =>
  orm
    .select()
    .from(invitation)
    .where(
      sql`${invitation.digest} IN (SELECT value FROM ${eachOf(p.digests)}) AND +${invitation.applicationId} = ${p.applicationId}`,
    ),
);

/** An application's invitations, those that there are. One round trip, to the primary. */
export const findInvitations = (
  db: Database,
  applicationId: ApplicationId,
  digests: readonly InvitationDigest[],
): Promise<InvitationRow[]> => db.all(SELECT, { applicationId, digests });
