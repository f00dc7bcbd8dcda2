import { and, eq, or, sql } from "drizzle-orm";
import type { ApplicationId, DeviceId, InvitationDigest } from "../../shared/identifiers.ts";
import { invitation } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { orm, type Placeholders, statement } from "./statement.ts";

interface Presented {
  applicationId: ApplicationId;
  digest: InvitationDigest;
  device: DeviceId;
  userId: string;
}

/** The plus sign keeps SQLite from searching by application, which would read all of its invitations. */
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
