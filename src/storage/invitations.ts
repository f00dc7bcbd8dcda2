import { and, eq, isNotNull, sql } from "drizzle-orm";
import * as z from "zod";
import type { Database } from "./database.ts";
import { badge, invitation } from "./schema.ts";

export type StoredInvitation = typeof invitation.$inferSelect;

/** An application's invitation. One round trip. */
export function findInvitation(
  db: Database,
  applicationId: string,
  digest: string,
): Promise<StoredInvitation | undefined> {
  return db.run((orm) =>
    orm
      .select()
      .from(invitation)
      .where(and(eq(invitation.digest, digest), eq(invitation.applicationId, applicationId)))
      .get(),
  );
}

/** An application's invitation, and the number of the badge that a user device has. One round trip. */
export async function findInvitationAndBadge(
  db: Database,
  digest: string,
  userDevice: { applicationId: string; device: string; userId: string },
): Promise<{ invitation: StoredInvitation | undefined; badgeNumber: number | null }> {
  const { applicationId, device, userId } = userDevice;
  const [invitations, badges] = await db.run((orm) =>
    orm.batch([
      orm
        .select()
        .from(invitation)
        .where(and(eq(invitation.digest, digest), eq(invitation.applicationId, applicationId))),
      orm
        .select({ number: badge.number })
        .from(badge)
        .where(
          and(
            eq(badge.applicationId, applicationId),
            eq(badge.device, device),
            eq(badge.userId, userId),
            isNotNull(badge.position),
          ),
        ),
    ]),
  );
  return { invitation: invitations[0], badgeNumber: badges[0]?.number ?? null };
}

export interface Claim {
  digest: string;
  applicationId: string;
  /** The reserved number. */
  number: number;
  device: string;
  userId: string;
  metadata: string | null;
  signingKeyId: number;
  eventId: string;
  payload: string;
  /** The number that the user device has so far and that is retired by this, or null. */
  replacedNumber: number | null;
  /** Milliseconds. */
  claimedAt: number;
}

/** In every statement below: the invitation was claimed by this very request. */
const IS_OURS = "EXISTS (SELECT 1 FROM invitation WHERE digest = ?1 AND claim_event_id = ?2)";

/** Only a pending invitation, in time, and only while the user device has the badge that the payload speaks of. */
const CLAIM = `
  UPDATE invitation SET state = 'claimed', ended_at = ?3, claim_device = ?4, claim_user_id = ?5, claim_event_id = ?2
  WHERE digest = ?1 AND application_id = ?6 AND state = 'pending' AND expires_at_time > ?3
    AND ?7 IS (SELECT number FROM badge
      WHERE application_id = ?6 AND device = ?4 AND user_id = ?5 AND position IS NOT NULL)`;

const RETIRE_REPLACED = `UPDATE badge SET position = NULL, retired_at = ?3 WHERE number = ?4 AND ${IS_OURS}`;

const ISSUE_RESERVED = `
  UPDATE badge SET device = ?4, user_id = ?5, metadata = ?7, signing_key_id = ?8, event_id = ?2, issued_at = ?3,
    position = 1 + coalesce((SELECT max(position) FROM badge WHERE application_id = ?6 AND position IS NOT NULL), 0),
    turn = 1 + coalesce((SELECT max(turn) FROM badge
      WHERE application_id = ?6 AND device = ?4 AND position IS NOT NULL AND user_id IS NOT NULL), 0)
  WHERE number = ?9 AND invitation = ?1 AND position IS NULL AND retired_at IS NULL AND ${IS_OURS}`;

const INSERT_EVENT = `
  INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
  SELECT application.id, ?2, 'badge:created', ?4, iif(application.webhook_held_at IS NULL, 'pending', 'held'), 0, ?3
  FROM application WHERE application.id = ?5 AND application.webhook_url IS NOT NULL AND ${IS_OURS}
  ON CONFLICT DO NOTHING`;

const SELECT_OURS = `
  SELECT webhook_event.state AS event_state FROM invitation
  LEFT JOIN webhook_event ON webhook_event.application_id = ?3 AND webhook_event.id = ?2
  WHERE digest = ?1 AND claim_event_id = ?2`;

const oursRows = z.array(z.object({ event_state: z.string().nullable() }));

/**
 * Consumes the token, retires the badge that the user device had, issues the reserved one and records the event, in one
 * transaction: all of it or nothing.
 *
 * @returns null when something moved since the request looked: it must look and decide again
 */
export async function writeClaim(db: Database, claim: Claim): Promise<{ eventPending: boolean } | null> {
  const { digest, applicationId, number, device, userId, metadata, signingKeyId, eventId, payload } = claim;
  const { replacedNumber, claimedAt } = claim;
  const results = await db.run((_, d1) =>
    d1.batch([
      d1.prepare(CLAIM).bind(digest, eventId, claimedAt, device, userId, applicationId, replacedNumber),
      d1.prepare(RETIRE_REPLACED).bind(digest, eventId, claimedAt, replacedNumber),
      d1
        .prepare(ISSUE_RESERVED)
        .bind(digest, eventId, claimedAt, device, userId, applicationId, metadata, signingKeyId, number),
      d1.prepare(INSERT_EVENT).bind(digest, eventId, claimedAt, payload, applicationId),
      d1.prepare(SELECT_OURS).bind(digest, eventId, applicationId),
    ]),
  );
  const [ours] = oursRows.parse(results.at(-1)?.results ?? []);
  return ours ? { eventPending: ours.event_state === "pending" } : null;
}

/**
 * Ends the reservation of an ended invitation. Found by its number: a condition that compares the two tables row by row
 * would read all badges. A number that is somebody else's by now has another invitation.
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

/** Revokes an invitation that is pending and in time, and ends its reservation; does nothing to any other. */
export function writeRevocation(db: Database, digest: string, now: number): Promise<void> {
  return writeEnd(db, REVOKE, digest, now);
}

/** Expires an invitation that is pending and past its time, and ends its reservation; does nothing to any other. */
export function writeExpiry(db: Database, digest: string, now: number): Promise<void> {
  return writeEnd(db, EXPIRE, digest, now);
}

async function writeEnd(db: Database, end: string, digest: string, now: number): Promise<void> {
  await db.run((_, d1) => d1.batch([d1.prepare(end).bind(digest, now), d1.prepare(DELETE_RESERVATION).bind(digest)]));
}

/** A revoked or expired invitation whose number the allocator does not have back yet. */
export interface EndedInvitation {
  applicationId: string;
  digest: string;
  /** Milliseconds. */
  endedAt: number;
}

const endedRows = z.array(
  z
    .object({ application_id: z.string(), digest: z.string(), ended_at: z.number() })
    .transform(({ application_id: applicationId, digest, ended_at: endedAt }) => ({ applicationId, digest, endedAt })),
);

/**
 * Invitations past their time become expired, longest past first, and their reservations end, in one transaction.
 *
 * @param applicationId of one application, or null for all
 * @returns those that this call ended, at most `limit`, longest ended first
 */
export async function writeExpiries(
  db: Database,
  now: number,
  limit: number,
  applicationId: string | null,
): Promise<EndedInvitation[]> {
  // Both statements of the transaction see the same rows: among equal times the index goes by rowid.
  const due = `FROM invitation WHERE state = 'pending' AND expires_at_time <= ?1
    ${applicationId === null ? "" : "AND application_id = ?3"} ORDER BY expires_at_time, rowid LIMIT ?2`;
  const bindings = applicationId === null ? [now, limit] : [now, limit, applicationId];
  const [, expired] = await db.run((_, d1) =>
    d1.batch([
      d1
        .prepare(
          `DELETE FROM badge WHERE position IS NULL AND retired_at IS NULL
             AND (number, invitation) IN (SELECT number, digest ${due})`,
        )
        .bind(...bindings),
      d1
        .prepare(
          `UPDATE invitation SET state = 'expired', ended_at = expires_at_time WHERE digest IN (SELECT digest ${due})
           RETURNING application_id, digest, ended_at`,
        )
        .bind(...bindings),
    ]),
  );
  // SQLite promises no order for RETURNING.
  return endedRows.parse(expired?.results).sort((one, other) => one.endedAt - other.endedAt);
}

/**
 * Ended invitations whose numbers the allocator does not have back yet, at most `limit`: by application, longest ended
 * first.
 *
 * @param of one application, or all whose ID comes after one (after the empty text: all)
 */
export async function findUnreleased(
  db: Database,
  limit: number,
  of: { applicationId: string } | { applicationsAfter: string },
): Promise<EndedInvitation[]> {
  const isOne = "applicationId" in of;
  const { results } = await db.run((_, d1) =>
    d1
      .prepare(
        `SELECT application_id, digest, ended_at FROM invitation
         WHERE released_at IS NULL AND state IN ('revoked', 'expired') AND application_id ${isOne ? "=" : ">"} ?2
         ORDER BY application_id, ended_at LIMIT ?1`,
      )
      .bind(limit, isOne ? of.applicationId : of.applicationsAfter)
      .all(),
  );
  return endedRows.parse(results);
}

/** Notes that the allocator has the numbers back. */
export async function writeReleases(db: Database, digests: readonly string[], now: number): Promise<void> {
  await db.run((orm) =>
    orm
      .update(invitation)
      .set({ releasedAt: now })
      .where(sql`${invitation.digest} IN (SELECT value FROM json_each(${JSON.stringify(digests)}))`),
  );
}
