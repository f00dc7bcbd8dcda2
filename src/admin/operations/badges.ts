import { eq } from "drizzle-orm";
import { badge, invitation, signingKey } from "../../shared/schema.ts";
import { isoTime } from "../output.ts";
import type { Database } from "../platform/database.ts";
import { selectNeighbour } from "./application-create.ts";

/** What is known of a badge number. Nothing of it tells the device: D1 has no udid. */
export interface ShownBadge {
  number: string;
  /** `free`: in the range of an application, held by nobody. `outside`: in no range. */
  state: "issued" | "reserved" | "retired" | "free" | "outside";
  applicationId: string | null;
  userId: string | null;
  metadata: unknown;
  issuedAt: string | null;
  retiredAt: string | null;
  /** Key ID of the signatures. */
  keyId: string | null;
  eventId: string | null;
  /** The invitation that reserved the number. */
  invitation: { state: string; expiresAt: string } | null;
}

export async function showBadge(database: Database, number: number): Promise<ShownBadge> {
  const [found] = await database.run((orm) =>
    orm
      .select()
      .from(badge)
      .leftJoin(signingKey, eq(signingKey.id, badge.signingKeyId))
      .leftJoin(invitation, eq(invitation.digest, badge.invitation))
      .where(eq(badge.number, number)),
  );
  if (found === undefined) return showUnused(database, number);
  const { badge: row, signing_key: key, invitation: reservedBy } = found;
  return {
    number: String(number),
    state: row.retiredAt !== null ? "retired" : row.position !== null ? "issued" : "reserved",
    applicationId: row.applicationId,
    userId: row.userId,
    metadata: row.metadata === null ? null : JSON.parse(row.metadata),
    issuedAt: isoTime(row.issuedAt),
    retiredAt: isoTime(row.retiredAt),
    keyId: key?.kid ?? null,
    eventId: row.eventId,
    invitation: reservedBy && { state: reservedBy.state, expiresAt: reservedBy.expiresAt },
  };
}

async function showUnused(database: Database, number: number): Promise<ShownBadge> {
  const [neighbour] = await database.run((orm) => selectNeighbour(orm, number, ""));
  const owner = neighbour !== undefined && neighbour.lastNumber >= number ? neighbour.id : null;
  return {
    number: String(number),
    state: owner === null ? "outside" : "free",
    applicationId: owner,
    userId: null,
    metadata: null,
    issuedAt: null,
    retiredAt: null,
    keyId: null,
    eventId: null,
    invitation: null,
  };
}
