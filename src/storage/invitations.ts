import { and, eq, isNotNull, sql } from "drizzle-orm";
import { z } from "zod";
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
      WHERE application_id = ?6 AND device = ?4 AND position IS NOT NULL), 0)
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

/** Ends the reservations of ended invitations. A number that is somebody else's by now has another invitation. */
const DELETE_RESERVATION = `
  DELETE FROM badge WHERE position IS NULL AND retired_at IS NULL
    AND number IN (SELECT ended.number FROM invitation AS ended WHERE ended.digest IN (SELECT value FROM json_each(?1))
      AND ended.state IN ('revoked', 'expired') AND ended.released_at IS NULL AND ended.digest = badge.invitation)`;

/** Revokes an invitation that is pending and in time, and ends its reservation; does nothing to any other. */
export async function writeRevocation(db: Database, digest: string, now: number): Promise<void> {
  const digests = JSON.stringify([digest]);
  await db.run((_, d1) =>
    d1.batch([
      d1
        .prepare(
          `UPDATE invitation SET state = 'revoked', ended_at = ?2
           WHERE digest = ?1 AND state = 'pending' AND expires_at_time > ?2`,
        )
        .bind(digest, now),
      d1.prepare(DELETE_RESERVATION).bind(digests),
    ]),
  );
}

const endedRows = z.array(z.object({ digest: z.string() }));

/** Invitations past their time become expired, at most `limit`; of one application when it is given. */
export async function writeExpiries(
  db: Database,
  now: number,
  limit: number,
  applicationId: string | null,
): Promise<number> {
  const due = await db.run((_, d1) =>
    d1
      .prepare(
        `SELECT digest AS digest FROM invitation
         WHERE state = 'pending' AND expires_at_time <= ?1 AND (?3 IS NULL OR application_id = ?3)
         ORDER BY expires_at_time LIMIT ?2`,
      )
      .bind(now, limit, applicationId)
      .all(),
  );
  const digests = endedRows.parse(due.results).map(({ digest }) => digest);
  if (digests.length === 0) return 0;
  const list = JSON.stringify(digests);
  await db.run((_, d1) =>
    d1.batch([
      d1
        .prepare(
          `UPDATE invitation SET state = 'expired', ended_at = expires_at_time
           WHERE digest IN (SELECT value FROM json_each(?1)) AND state = 'pending'`,
        )
        .bind(list),
      d1.prepare(DELETE_RESERVATION).bind(list),
    ]),
  );
  return digests.length;
}

const unreleasedRows = z.array(z.object({ application_id: z.string(), digest: z.string() }));

/** Ended invitations whose numbers the allocator does not have back yet, by application, longest ended first. */
export async function findUnreleased(
  db: Database,
  limit: number,
  applicationId: string | null,
): Promise<Map<string, string[]>> {
  const { results } = await db.run((_, d1) =>
    d1
      .prepare(
        `SELECT application_id, digest FROM invitation
         WHERE released_at IS NULL AND state IN ('revoked', 'expired') AND (?2 IS NULL OR application_id = ?2)
         ORDER BY application_id, ended_at LIMIT ?1`,
      )
      .bind(limit, applicationId)
      .all(),
  );
  const byApplication = new Map<string, string[]>();
  for (const { application_id: id, digest } of unreleasedRows.parse(results)) {
    byApplication.set(id, [...(byApplication.get(id) ?? []), digest]);
  }
  return byApplication;
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
