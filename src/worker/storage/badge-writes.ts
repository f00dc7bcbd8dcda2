import * as z from "zod";
import { isNotBlocked } from "../../shared/storage/blocked-users.ts";
import {
  type HighWater,
  highestOf,
  lastChange,
  lastPosition,
  renewEpochIfRestored,
} from "../../shared/storage/high-water.ts";
import { isSubscribedTo } from "../../shared/storage/subscriptions.ts";
import { writtenIds } from "../../shared/storage/written-ids.ts";
import type { Database } from "./database.ts";
import { highestTurn, withTurnSteps } from "./turns.ts";

/** A badge to be written, together with its `badge:created` event. */
export interface NewBadge {
  kind: "issue";
  number: number;
  device: string;
  userId: string;
  /** JSON text, or null when the device sent none. */
  metadata: string | null;
  signingKeyId: number;
  /** Made once per request, so that a repeated write recognizes the badge as its own. */
  eventId: string;
  /** The body of the `badge:created` webhook. */
  payload: string;
  /** Milliseconds. */
  issuedAt: number;
}

/** A number to be reserved for an invitation, together with the invitation. */
export interface NewReservation {
  kind: "reserve";
  number: number;
  /** Digest of the invitation token. */
  invitation: string;
  creatorDevice: string;
  expiresAt: string;
  /** Milliseconds, like `createdAt`. */
  expiresAtTime: number;
  createdAt: number;
  /** The end of the badge that will be claimed, as it was sent and in milliseconds; null: it has no end. */
  badgeExpiresAt: string | null;
  badgeExpiresAtTime: number | null;
  /** Whether the application's secret was presented. */
  withSecret: boolean;
  /** Whether the caller can ask for the same invitation again, by an Idempotency-Key. */
  isRepeatable: boolean;
}

export type BadgeWrite = NewBadge | NewReservation;

/** `leasedNumberTaken`: the number that this write was to use belongs to another holder in D1. */
export type WriteResult =
  /** By this write or an earlier one of the same request. */
  | { kind: "written"; number: number; eventPending: boolean }
  /** The user device already has a badge. */
  | { kind: "existing"; number: number; leasedNumberTaken: boolean }
  /** An earlier write of the same request reserved `number`, and the invitation has ended since. */
  | { kind: "ended"; number: number; leasedNumberTaken: boolean }
  /** The Idempotency-Key was used for a different request; `isReserved`: that one still reserves the leased number. */
  | { kind: "mismatched"; isReserved: boolean; leasedNumberTaken: boolean }
  /** The user is blocked. */
  | { kind: "blocked" }
  /** The leased number belongs to another holder in D1, which never issues a number twice. */
  | { kind: "taken" }
  /** What prevented the write has ended since, as a block does; the same write would succeed now. */
  | { kind: "unhindered" };

/**
 * One statement per table, whatever the number of rows: they are passed as one JSON parameter, because D1 binds at most
 * 100. `ON CONFLICT DO NOTHING` makes each statement repeatable; the rows that it skips are looked up afterwards.
 */
export const INSERT_BADGES = `
  INSERT INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id, issued_at,
    position, change, changed_at, turn)
  SELECT row ->> 'number', ?2, row ->> 'device', row ->> 'userId', row ->> 'metadata', row ->> 'signingKeyId',
    row ->> 'eventId', row ->> 'issuedAt',
    row_index + 1 + max(${lastPosition("?2")}, ?3), row_index + 1 + max(${lastChange("?2")}, ?4), row ->> 'issuedAt',
    row ->> 'turnStep' + ${highestTurn({ applicationId: "?2", device: "row ->> 'device'" })}
  FROM (SELECT key AS row_index, value AS row FROM json_each(?1))
  WHERE ${isNotBlocked("row ->> 'userId'")}
  ON CONFLICT DO NOTHING
  RETURNING event_id AS written, position, change`;

/** Outbox rows of the badges just written; none when the application does not subscribe to the event. */
export const INSERT_EVENTS = `
  INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
  SELECT ?2, row ->> 'eventId', 'badge:created', row ->> 'payload',
    iif(application.webhook_held_at IS NULL, 'pending', 'held'), 0, row ->> 'issuedAt'
  FROM (SELECT value AS row FROM json_each(?1))
  JOIN badge ON badge.number = row ->> 'number' AND badge.event_id = row ->> 'eventId'
  JOIN application ON application.id = ?2 AND ${isSubscribedTo("'badge:created'")}
  WHERE true
  ON CONFLICT DO NOTHING
  RETURNING id AS written`;

/** Skips invitations that D1 has: a repeated write may arrive after its invitation ended. */
export const INSERT_RESERVATIONS = `
  INSERT INTO badge (number, application_id, invitation)
  SELECT row ->> 'number', ?2, row ->> 'invitation' FROM (SELECT value AS row FROM json_each(?1))
  WHERE NOT EXISTS (SELECT 1 FROM invitation WHERE digest = row ->> 'invitation')
  ON CONFLICT DO NOTHING`;

export const INSERT_INVITATIONS = `
  INSERT INTO invitation (digest, application_id, number, state, creator_device, expires_at, expires_at_time,
    created_at, badge_expires_at, badge_expires_at_time, with_secret, is_repeatable)
  SELECT row ->> 'invitation', ?2, row ->> 'number', 'pending', row ->> 'creatorDevice', row ->> 'expiresAt',
    row ->> 'expiresAtTime', row ->> 'createdAt', row ->> 'badgeExpiresAt', row ->> 'badgeExpiresAtTime',
    row ->> 'withSecret', row ->> 'isRepeatable'
  FROM (SELECT value AS row FROM json_each(?1))
  JOIN badge ON badge.number = row ->> 'number' AND badge.invitation = row ->> 'invitation'
    AND badge.position IS NULL
  WHERE true
  ON CONFLICT DO NOTHING
  RETURNING digest AS written`;

/** Finds the rows that caused writes to be skipped. */
const SELECT_CONFLICTS = `
  SELECT row_index, own.number AS own_number, own.event_id AS own_event, taken.number AS taken_number,
    taken.event_id AS taken_event, taken.invitation AS taken_invitation, known.number AS known_number,
    known.creator_device IS row ->> 'creatorDevice' AND known.expires_at IS row ->> 'expiresAt'
      AND known.badge_expires_at IS row ->> 'badgeExpiresAt' AS is_same,
    NOT ${isNotBlocked("row ->> 'userId'")} AS is_blocked
  FROM (SELECT key AS row_index, value AS row FROM json_each(?1))
  LEFT JOIN badge AS own ON own.application_id = ?2 AND own.device = row ->> 'device'
    AND own.user_id = row ->> 'userId' AND own.position IS NOT NULL AND own.retired_at IS NULL
  LEFT JOIN badge AS taken ON taken.number = row ->> 'number'
  LEFT JOIN invitation AS known ON known.digest = row ->> 'invitation'
  ORDER BY row_index`;

const conflictRows = z.array(
  z.object({
    own_number: z.number().nullable(),
    own_event: z.string().nullable(),
    taken_number: z.number().nullable(),
    taken_event: z.string().nullable(),
    taken_invitation: z.string().nullable(),
    known_number: z.number().nullable(),
    is_same: z.number(),
    is_blocked: z.number(),
  }),
);

type Conflict = z.infer<typeof conflictRows>[number];

/**
 * Writes badges with their events, and reservations with their invitations, of one application. One transaction, one
 * round trip. A second round trip explains skipped rows: a repeated write, or a lost race.
 *
 * @param seen the highest numbers that the caller knows to be written
 * @returns `results`: one per write, in the same order; `written`: the highest numbers that were written
 */
export async function writeBadges(
  db: Database,
  applicationId: string,
  writes: readonly BadgeWrite[],
  seen: HighWater,
): Promise<{ results: WriteResult[]; written: HighWater }> {
  const { written, events, highest } = await insertAll(db, applicationId, writes, seen);
  // Of several requests with the same Idempotency-Key in one transaction, only the first was written.
  const firstOf = new Map(writes.toReversed().map((write) => [keyOf(write), write]));
  const isWritten = (write: BadgeWrite) => written.has(keyOf(write)) && firstOf.get(keyOf(write)) === write;
  const skipped = writes.filter((write) => !isWritten(write));
  const conflicts = skipped.length === 0 ? [] : await selectConflicts(db, applicationId, skipped);
  let nextConflict = 0;
  const results = writes.map((write): WriteResult => {
    if (!isWritten(write)) return explain(write, conflicts[nextConflict++]);
    const eventPending = write.kind === "issue" && events.has(write.eventId);
    return { kind: "written", number: write.number, eventPending };
  });
  return { results, written: highest };
}

/** Identifies a write among the rows that its INSERT returns. */
const keyOf = (write: BadgeWrite): string => (write.kind === "issue" ? write.eventId : write.invitation);

async function insertAll(
  db: Database,
  applicationId: string,
  writes: readonly BadgeWrite[],
  seen: HighWater,
): Promise<{ written: Set<string>; events: Set<string>; highest: HighWater }> {
  const issues = writes.filter((write) => write.kind === "issue");
  const reservations = writes.filter((write) => write.kind === "reserve");
  const badges = withTurnSteps(issues.map(({ payload: _, ...badge }) => badge));
  const events = issues.map(({ number, eventId, payload, issuedAt }) => ({ number, eventId, payload, issuedAt }));
  const results = await db.run((_, d1) => {
    const bound = (sql: string, rows: readonly unknown[], ...more: unknown[]) =>
      d1.prepare(sql).bind(JSON.stringify(rows), applicationId, ...more);
    return d1.batch([
      ...(issues.length > 0
        ? [
            renewEpochIfRestored(d1, applicationId, seen),
            bound(INSERT_BADGES, badges, seen.position, seen.change),
            bound(INSERT_EVENTS, events),
          ]
        : []),
      ...(reservations.length > 0
        ? [INSERT_RESERVATIONS, INSERT_INVITATIONS].map((sql) => bound(sql, reservations))
        : []),
    ]);
  });
  const [, badgeRows, eventRows] = issues.length > 0 ? results : [];
  const invitationRows = reservations.length > 0 ? results.at(-1) : undefined;
  return {
    written: new Set([...writtenIds(badgeRows), ...writtenIds(invitationRows)]),
    events: writtenIds(eventRows),
    highest: highestOf(badgeRows),
  };
}

async function selectConflicts(
  db: Database,
  applicationId: string,
  writes: readonly BadgeWrite[],
): Promise<Conflict[]> {
  const rows = JSON.stringify(writes);
  const { results } = await db.run((_, d1) => d1.prepare(SELECT_CONFLICTS).bind(rows, applicationId).all());
  return conflictRows.parse(results);
}

function explain(write: BadgeWrite, conflict: Conflict | undefined): WriteResult {
  if (!conflict) throw new Error("a write was skipped, but nothing conflicts with it");
  if (write.kind === "reserve") {
    const { taken_invitation: owner, taken_number: taken, known_number: known } = conflict;
    if (known !== null && conflict.is_same === 0) {
      return { kind: "mismatched", isReserved: owner === write.invitation, leasedNumberTaken: taken !== null };
    }
    // The invitation was claimed so long ago that it has been deleted (contract section 18).
    if (known === null && owner === write.invitation) {
      return { kind: "mismatched", isReserved: true, leasedNumberTaken: false };
    }
    if (owner === write.invitation) return { kind: "written", number: write.number, eventPending: false };
    if (known !== null) return { kind: "ended", number: known, leasedNumberTaken: taken !== null };
    return { kind: taken === null ? "unhindered" : "taken" };
  }
  const { own_number: own, own_event: ownEvent, taken_number: taken } = conflict;
  if (own !== null && ownEvent === write.eventId) return { kind: "written", number: own, eventPending: true };
  if (own !== null) return { kind: "existing", number: own, leasedNumberTaken: taken !== null && taken !== own };
  if (conflict.is_blocked === 1) return { kind: "blocked" };
  return { kind: taken === null ? "unhindered" : "taken" };
}

const SELECT_KNOWN = `
  SELECT badge.number AS number, badge.device AS device, badge.user_id AS user_id, badge.invitation AS invitation,
    coalesce(invitation.is_repeatable, 0) AS is_repeatable
  FROM json_each(?1) AS asked JOIN badge ON badge.number = asked.value
  LEFT JOIN invitation ON invitation.digest = badge.invitation`;

const knownRows = z.array(
  z.object({
    number: z.number(),
    device: z.string().nullable(),
    user_id: z.string().nullable(),
    invitation: z.string().nullable(),
    is_repeatable: z.number(),
  }),
);

/** What D1 says of a number that it knows, in any state. */
export interface NumberOwner {
  device: string | null;
  userId: string | null;
  invitation: string | null;
  /** Whether the invitation's creator can request it again, by its Idempotency-Key. */
  isRepeatable: boolean;
}

/** The numbers that D1 has, in any state, with their owners. */
export async function findNumberOwners(db: Database, numbers: readonly number[]): Promise<Map<number, NumberOwner>> {
  const asked = JSON.stringify(numbers);
  const { results } = await db.run((_, d1) => d1.prepare(SELECT_KNOWN).bind(asked).all());
  return new Map(
    knownRows
      .parse(results)
      .map(({ number, device, user_id: userId, invitation, is_repeatable }) => [
        number,
        { device, userId, invitation, isRepeatable: is_repeatable === 1 },
      ]),
  );
}
