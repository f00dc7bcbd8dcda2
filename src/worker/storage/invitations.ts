import { and, eq, getTableColumns, sql } from "drizzle-orm";
import type { ApplicationId, InvitationDigest } from "../../shared/identifiers.ts";
import { invitation } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { eachOf, orm, type Placeholders, statement } from "./statement.ts";

const { applicationId: _, ...columns } = getTableColumns(invitation);

/** The plus sign keeps SQLite from searching by application, which would read all of its invitations. */
const SELECT_INVITATIONS = statement(
  (p: Placeholders<{ applicationId: ApplicationId; digests: readonly InvitationDigest[] }>) =>
    orm
      .select(columns)
      .from(invitation)
      .where(
        and(
          sql`${invitation.digest} IN (SELECT value FROM ${eachOf(p.digests)})`,
          sql`+${invitation.applicationId} = ${p.applicationId}`,
        ),
      ),
);

/** The application's invitations that have one of these digests. One round trip, to the primary. */
export function findInvitations(db: Database, applicationId: ApplicationId, digests: readonly InvitationDigest[]) {
  return db.all(SELECT_INVITATIONS, { applicationId, digests });
}

const SELECT_PENDING = statement((p: Placeholders<{ applicationId: ApplicationId; digest: InvitationDigest }>) =>
  orm
    .select({ digest: invitation.digest })
    .from(invitation)
    .where(
      and(
        eq(invitation.digest, p.digest),
        sql`+${invitation.applicationId} = ${p.applicationId}`,
        eq(invitation.state, "pending"),
      ),
    ),
);

/** Whether the application has a pending invitation of this token. One round trip, to the primary. */
export async function hasPendingInvitation(
  db: Database,
  applicationId: ApplicationId,
  digest: InvitationDigest,
): Promise<boolean> {
  return (await db.all(SELECT_PENDING, { applicationId, digest })).length > 0;
}
