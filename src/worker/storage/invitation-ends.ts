import { sql } from "drizzle-orm";
import * as z from "zod";
import {
  type ApplicationId,
  applicationId,
  type InvitationDigest,
  invitationDigest,
} from "../../shared/identifiers.ts";
import { invitation } from "../../shared/schema.ts";
import { writtenIds } from "../../shared/storage/d1.ts";
import type { Database } from "./database.ts";
import { insertEndEvents, recordedEvents } from "./invitation-events.ts";
import type { EventId } from "./webhook-events.ts";

/**
 * Deletes the reservation of an ended invitation. The row is found by number, because a condition that compares the two
 * tables row by row would read all badges. If the number has another owner by now, its `invitation` differs.
 */
const DELETE_RESERVATION = `
  DELETE FROM badge WHERE position IS NULL AND retired_at IS NULL AND invitation = ?1
    AND number = (SELECT number FROM invitation WHERE digest = ?1 AND state IN ('revoked', 'expired'))`;

const REVOKE = `
  UPDATE invitation SET state = 'revoked', ended_at = ?2
  WHERE digest = ?1 AND state = 'pending' AND expires_at_time > ?2`;

const EXPIRE = `
  UPDATE invitation SET state = 'expired', ended_at = expires_at_time
  WHERE digest = ?1 AND state = 'pending' AND expires_at_time <= ?2`;

/** One way to end an invitation. */
interface Ending {
  end: string;
  /** Which rows of `invitation` it ends: `?1` is now, `?4` the digest. */
  ending: string;
}

const REVOCATION: Ending = {
  end: REVOKE,
  ending: "SELECT * FROM invitation WHERE digest = ?4 AND state = 'pending' AND expires_at_time > ?1",
};

const EXPIRY: Ending = {
  end: EXPIRE,
  ending: "SELECT * FROM invitation WHERE digest = ?4 AND state = 'pending' AND expires_at_time <= ?1",
};

/**
 * Revokes an invitation and deletes its reservation, if it is pending and not past its time.
 *
 * @returns the event that was recorded, if the application subscribes to it
 */
export function writeRevocation(db: Database, digest: InvitationDigest, now: number): Promise<EventId[]> {
  return writeEnd(db, REVOCATION, digest, now);
}

/**
 * Expires an invitation and deletes its reservation, if it is pending and past its time.
 *
 * @returns the event that was recorded, if the application subscribes to it
 */
export function writeExpiry(db: Database, digest: InvitationDigest, now: number): Promise<EventId[]> {
  return writeEnd(db, EXPIRY, digest, now);
}

async function writeEnd(
  db: Database,
  { end, ending }: Ending,
  digest: InvitationDigest,
  now: number,
): Promise<EventId[]> {
  const [recorded] = await db.run((_, d1) =>
    d1.batch([
      insertEndEvents(d1, now, { ending, parameters: [digest] }),
      d1.prepare(end).bind(digest, now),
      d1.prepare(DELETE_RESERVATION).bind(digest),
    ]),
  );
  return recordedEvents(recorded);
}

const END_PENDING = `
  UPDATE invitation SET state = iif(expires_at_time <= ?2, 'expired', 'revoked'), ended_at = min(expires_at_time, ?2),
    released_at = ?2
  WHERE digest IN (SELECT value FROM json_each(?1)) AND state = 'pending'
  RETURNING digest AS written`;

const DELETE_RESERVATIONS = `
  DELETE FROM badge WHERE position IS NULL AND retired_at IS NULL
    AND (number, invitation) IN (SELECT number, digest FROM invitation
      WHERE digest IN (SELECT value FROM json_each(?1)) AND state IN ('revoked', 'expired'))`;

/**
 * Ends those of the invitations that are pending, with their reservations. For numbers that the allocator has released, or
 * releases itself.
 *
 * @returns digests of the invitations that this call ended, and the events that were recorded
 */
export async function endPending(
  db: Database,
  digests: readonly InvitationDigest[],
  now: number,
): Promise<{ ended: Set<string>; events: EventId[] }> {
  const list = JSON.stringify(digests);
  const ending = "SELECT * FROM invitation WHERE digest IN (SELECT value FROM json_each(?4)) AND state = 'pending'";
  const [recorded, ended] = await db.run((_, d1) =>
    d1.batch([
      insertEndEvents(d1, now, { ending, parameters: [list] }),
      d1.prepare(END_PENDING).bind(list, now),
      d1.prepare(DELETE_RESERVATIONS).bind(list),
    ]),
  );
  return { ended: writtenIds(ended), events: recordedEvents(recorded) };
}

/** A revoked or expired invitation whose number the allocator has not released yet. */
export interface EndedInvitation {
  applicationId: ApplicationId;
  digest: InvitationDigest;
  /** The number that it reserved. */
  number: number;
  /** Milliseconds. */
  endedAt: number;
}

const endedRows = z.array(
  z
    .object({ application_id: applicationId, digest: invitationDigest, number: z.number(), ended_at: z.number() })
    .transform(({ application_id: applicationId, ended_at: endedAt, ...ended }) => ({
      applicationId,
      endedAt,
      ...ended,
    })),
);

/**
 * Expires invitations past their time, earliest first, and deletes their reservations, in one transaction.
 *
 * @param applicationId null: of all applications
 * @returns the invitations that this call ended, at most `limit`, earliest first, and the events that were recorded
 */
export async function writeExpiries(
  db: Database,
  now: number,
  limit: number,
  applicationId: ApplicationId | null,
): Promise<{ ended: EndedInvitation[]; events: EventId[] }> {
  // Ordering by rowid too makes every statement of the transaction select the same rows.
  const due = (limitParameter: string, applicationParameter: string) => `FROM invitation
    WHERE state = 'pending' AND expires_at_time <= ?1
    AND application_id ${applicationId === null ? "IN (SELECT id FROM application)" : `= ${applicationParameter}`}
    ORDER BY expires_at_time, rowid LIMIT ${limitParameter}`;
  const selection = applicationId === null ? [limit] : [limit, applicationId];
  const [recorded, , expired] = await db.run((_, d1) =>
    d1.batch([
      insertEndEvents(d1, now, { ending: `SELECT * ${due("?4", "?5")}`, parameters: selection }),
      d1
        .prepare(
          `DELETE FROM badge WHERE position IS NULL AND retired_at IS NULL
             AND (number, invitation) IN (SELECT number, digest ${due("?2", "?3")})`,
        )
        .bind(now, ...selection),
      d1
        .prepare(
          `UPDATE invitation SET state = 'expired', ended_at = expires_at_time
           WHERE digest IN (SELECT digest ${due("?2", "?3")})
           RETURNING application_id, digest, number, ended_at`,
        )
        .bind(now, ...selection),
    ]),
  );
  // SQLite does not define the order of RETURNING.
  const ended = endedRows.parse(expired?.results).sort((one, other) => one.endedAt - other.endedAt);
  return { ended, events: recordedEvents(recorded) };
}

/**
 * Ended invitations whose numbers the allocator has not released yet, at most `limit`, by application, earliest first.
 *
 * @param of one application, or all with a greater ID; all are greater than the empty string
 */
export async function findUnreleased(
  db: Database,
  limit: number,
  of: { applicationId: ApplicationId } | { afterApplicationId: string },
): Promise<EndedInvitation[]> {
  const isOne = "applicationId" in of;
  const { results } = await db.run((_, d1) =>
    d1
      .prepare(
        `SELECT application_id, digest, number, ended_at FROM invitation
         WHERE released_at IS NULL AND state IN ('revoked', 'expired') AND application_id ${isOne ? "=" : ">"} ?2
         ORDER BY application_id, ended_at LIMIT ?1`,
      )
      .bind(limit, isOne ? of.applicationId : of.afterApplicationId)
      .all(),
  );
  return endedRows.parse(results);
}

/** Records that the allocator has released the numbers. */
export async function writeReleases(db: Database, digests: readonly InvitationDigest[], now: number): Promise<void> {
  await db.run((orm) =>
    orm
      .update(invitation)
      .set({ releasedAt: now })
      .where(sql`${invitation.digest} IN (SELECT value FROM json_each(${JSON.stringify(digests)}))`),
  );
}
