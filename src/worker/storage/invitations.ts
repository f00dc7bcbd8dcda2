import { and, eq, getTableColumns, isNotNull, isNull, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import * as z from "zod";
import { badge, blockedUser, invitation, type StoredState } from "../../shared/schema.ts";
import { changeOf } from "../../shared/storage/high-water.ts";
import { writtenIds } from "../../shared/storage/written-ids.ts";
import type { UserDevice } from "./badges.ts";
import { type Database, prepared } from "./database.ts";
import { insertEndEvents, recordedEvents } from "./invitation-events.ts";
import type { EventId } from "./webhook-events.ts";

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

export interface InvitationForDevice extends StoredInvitation {
  isBlocked: boolean;
  /** The user device's badge, in any state; null: none. */
  badge: {
    number: number;
    change: number;
    metadata: string | null;
    state: StoredState;
    expiresAt: number | null;
  } | null;
}

export const selectInvitationForDevice = prepared((orm) => {
  const applicationId = sql.placeholder("applicationId");
  const userId = sql.placeholder("userId");
  const own = alias(badge, "own");
  const ownBadge = and(
    eq(own.applicationId, applicationId),
    eq(own.device, sql.placeholder("device")),
    eq(own.userId, userId),
    isNotNull(own.position),
    isNull(own.retiredAt),
  );
  const isBlocked = sql<number>`EXISTS (SELECT 1 FROM ${blockedUser}
    WHERE ${blockedUser.applicationId} = ${applicationId} AND ${blockedUser.userId} = ${userId})`;
  return orm
    .select({
      ...getTableColumns(invitation),
      isBlocked,
      // D1 mixes up result columns of the same name.
      ownNumber: sql<number | null>`${own.number}`.as("own_number"),
      ownChange: sql<number | null>`${sql.raw(changeOf("own"))}`.as("own_change"),
      ownMetadata: sql<string | null>`${own.metadata}`.as("own_metadata"),
      ownState: sql<StoredState | null>`${own.state}`.as("own_state"),
      ownExpiresAt: sql<number | null>`${own.expiresAt}`.as("own_expires_at"),
    })
    .from(invitation)
    .leftJoin(own, ownBadge)
    .where(and(eq(invitation.digest, sql.placeholder("digest")), eq(invitation.applicationId, applicationId)))
    .prepare();
});

/** An application's invitation, with what decides whether a user device may claim it. One round trip. */
export async function findInvitationForDevice(
  db: Database,
  digest: string,
  userDevice: UserDevice,
): Promise<InvitationForDevice | undefined> {
  const found = await db.run((orm) => selectInvitationForDevice(orm).get({ digest, ...userDevice }));
  if (!found) return undefined;
  const { isBlocked, ownNumber, ownChange, ownMetadata, ownState, ownExpiresAt, ...invited } = found;
  const own =
    ownNumber === null || ownChange === null || ownState === null
      ? null
      : { number: ownNumber, change: ownChange, metadata: ownMetadata, state: ownState, expiresAt: ownExpiresAt };
  return { ...invited, isBlocked: isBlocked === 1, badge: own };
}

/** The invitation that reserves a number, or did before the number was claimed. One round trip. */
export function findInvitationOfNumber(
  db: Database,
  applicationId: string,
  number: number,
): Promise<StoredInvitation | undefined> {
  return db.run((orm) =>
    orm
      .select(getTableColumns(invitation))
      .from(badge)
      .innerJoin(invitation, eq(invitation.digest, badge.invitation))
      .where(and(eq(badge.number, number), eq(badge.applicationId, applicationId)))
      .get(),
  );
}

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
export function writeRevocation(db: Database, digest: string, now: number): Promise<EventId[]> {
  return writeEnd(db, REVOCATION, digest, now);
}

/**
 * Expires an invitation and deletes its reservation, if it is pending and past its time.
 *
 * @returns the event that was recorded, if the application subscribes to it
 */
export function writeExpiry(db: Database, digest: string, now: number): Promise<EventId[]> {
  return writeEnd(db, EXPIRY, digest, now);
}

async function writeEnd(db: Database, { end, ending }: Ending, digest: string, now: number): Promise<EventId[]> {
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
  digests: readonly string[],
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
  applicationId: string;
  digest: string;
  /** The number that it reserved. */
  number: number;
  /** Milliseconds. */
  endedAt: number;
}

const endedRows = z.array(
  z
    .object({ application_id: z.string(), digest: z.string(), number: z.number(), ended_at: z.number() })
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
  applicationId: string | null,
): Promise<{ ended: EndedInvitation[]; events: EventId[] }> {
  // Ordering by rowid too makes every statement of the transaction select the same rows. The plus sign keeps SQLite from
  // searching by application, which would read all of its invitations.
  const due = (limitParameter: string, applicationParameter: string) => `FROM invitation
    WHERE state = 'pending' AND expires_at_time <= ?1
    ${applicationId === null ? "" : `AND +application_id = ${applicationParameter}`}
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
  of: { applicationId: string } | { afterApplicationId: string },
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
export async function writeReleases(db: Database, digests: readonly string[], now: number): Promise<void> {
  await db.run((orm) =>
    orm
      .update(invitation)
      .set({ releasedAt: now })
      .where(sql`${invitation.digest} IN (SELECT value FROM json_each(${JSON.stringify(digests)}))`),
  );
}
