import { and, eq, sql } from "drizzle-orm";
import type { ApplicationId, InvitationDigest } from "../../shared/identifiers.ts";
import { application, invitation } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { orm, type Placeholders, statement } from "./statement.ts";

const SELECT_DESCRIBED = statement((p: Placeholders<{ applicationId: ApplicationId; digest: InvitationDigest }>) =>
  orm
    .select({
      /** The stored state; a pending invitation may be past its time. */
      state: invitation.state,
      expiresAt: invitation.expiresAt,
      expiresAtTime: invitation.expiresAtTime,
      badgeStartsAt: invitation.badgeStartsAt,
      badgeStartsAtTime: invitation.badgeStartsAtTime,
      badgeExpiresAt: invitation.badgeExpiresAt,
      badgeExpiresAtTime: invitation.badgeExpiresAtTime,
      name: invitation.name,
      /** The user who may claim it; null for any holder of the token. */
      userId: invitation.userId,
      // Renamed, because the invitation has a name, too.
      applicationName: sql<string>`${application.name}`.as("application_name"),
    })
    .from(invitation)
    .innerJoin(application, eq(application.id, invitation.applicationId))
    .where(and(eq(invitation.digest, p.digest), eq(invitation.applicationId, p.applicationId))),
);

/** An invitation with the name of its application. One round trip, to the primary. */
export async function findDescription(db: Database, applicationId: ApplicationId, digest: InvitationDigest) {
  const [found] = await db.all(SELECT_DESCRIBED, { applicationId, digest });
  return found;
}
