import { and, eq, getTableColumns, or, sql } from "drizzle-orm";
import type { ApplicationId, DeviceId, InvitationDigest } from "../../shared/identifiers.ts";
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

interface Presented {
  applicationId: ApplicationId;
  digest: InvitationDigest;
  device: DeviceId;
  userId: string;
}

const SELECT_USABLE = statement((p: Placeholders<Presented>) => {
  const { claimDevice, claimUserId, state } = invitation;
  const isOwn = and(eq(state, "claimed"), eq(claimDevice, p.device), eq(claimUserId, p.userId));
  return orm
    .select({ digest: invitation.digest })
    .from(invitation)
    .where(
      and(
        eq(invitation.digest, p.digest),
        sql`+${invitation.applicationId} = ${p.applicationId}`,
        or(eq(state, "pending"), isOwn),
      ),
    );
});

/** Whether the token's invitation is pending, or this user device has claimed it. One round trip, to the primary. */
export async function isUsableToken(db: Database, presented: Presented): Promise<boolean> {
  return (await db.all(SELECT_USABLE, presented)).length > 0;
}
