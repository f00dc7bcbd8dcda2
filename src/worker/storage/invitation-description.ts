import * as z from "zod";
import type { ApplicationId, InvitationDigest } from "../../shared/identifiers.ts";
import { INVITATION_STATES } from "../../shared/schema.ts";
import type { Database } from "./database.ts";

const nullableText = z.string().nullable();

const describedRow = z.object({
  /** As stored: a pending invitation may be past its time. */
  state: z.enum(INVITATION_STATES),
  /** Times as they were sent. */
  expiresAt: z.string(),
  /** When the invitation ends, in milliseconds. */
  expiresAtTime: z.number(),
  badgeStartsAt: nullableText,
  badgeExpiresAt: nullableText,
  name: nullableText,
  /** The user who may claim it; null: anybody with the token. */
  userId: nullableText,
  applicationName: z.string(),
});

export type DescribedInvitation = z.infer<typeof describedRow>;

/** The plus sign keeps SQLite from searching by application, which would read all of its invitations. */
const SELECT_DESCRIBED = `
  SELECT invitation.state, invitation.expires_at AS expiresAt, invitation.expires_at_time AS expiresAtTime,
    invitation.badge_starts_at AS badgeStartsAt, invitation.badge_expires_at AS badgeExpiresAt,
    invitation.name, invitation.user_id AS userId, application.name AS applicationName
  FROM invitation JOIN application ON application.id = invitation.application_id
  WHERE invitation.digest = ?1 AND +invitation.application_id = ?2`;

/** An invitation with the name of its application. One round trip, to the primary. */
export async function findDescription(
  db: Database,
  applicationId: ApplicationId,
  digest: InvitationDigest,
): Promise<DescribedInvitation | undefined> {
  const [row] = await db.rows(describedRow, SELECT_DESCRIBED, [digest, applicationId]);
  return row;
}
