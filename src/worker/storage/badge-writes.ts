import type { ApplicationId, DeviceId, InvitationDigest } from "../../shared/identifiers.ts";
import { isNotBlocked } from "../../shared/storage/blocked-users.ts";
import { writtenIds } from "../../shared/storage/d1.ts";
import {
  type HighWater,
  highestOf,
  lastChange,
  lastPosition,
  renewEpochIfRestored,
} from "../../shared/storage/high-water.ts";
import { insertEventsOf } from "../../shared/storage/outbox.ts";
import type { Database } from "./database.ts";
import { explainSkipped } from "./skipped-writes.ts";
import { highestTurn, withTurnSteps } from "./turns.ts";

/** A badge to be written, together with its `badge:created` event. */
export interface NewBadge {
  kind: "issue";
  number: number;
  device: DeviceId;
  userId: string;
  /** JSON text, or null when the device sent none. */
  metadata: string | null;
  signingKeyId: number;
  /** Of the key that the badge is bound to. Null, or not sent by a Worker of an earlier release: it is not bound. */
  keyThumbprint?: string | null;
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
  invitation: InvitationDigest;
  creatorDevice: DeviceId;
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
  /** The write was prevented, for example by a block, but the obstacle is gone; the same write would succeed now. */
  | { kind: "unhindered" };

/**
 * One statement per table, whatever the number of rows: they are passed as one JSON parameter, because D1 binds at most
 * 100. `ON CONFLICT DO NOTHING` makes each statement repeatable; the rows that it skips are looked up afterwards. A user
 * device's badge of the other kind, bound or not, conflicts with no index, so it is looked for.
 */
export const INSERT_BADGES = `
  INSERT INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id, issued_at,
    key_thumbprint, position, change, changed_at, turn)
  SELECT row ->> 'number', ?2, row ->> 'device', row ->> 'userId', row ->> 'metadata', row ->> 'signingKeyId',
    row ->> 'eventId', row ->> 'issuedAt', row ->> 'keyThumbprint',
    row_index + 1 + max(${lastPosition("?2")}, ?3), row_index + 1 + max(${lastChange("?2")}, ?4), row ->> 'issuedAt',
    row ->> 'turnStep' + ${highestTurn({ applicationId: "?2", device: "row ->> 'device'" })}
  FROM (SELECT key AS row_index, value AS row FROM json_each(?1))
  WHERE ${isNotBlocked("row ->> 'userId'")} AND NOT EXISTS (SELECT 1 FROM badge AS own
    WHERE own.application_id = ?2 AND own.device = row ->> 'device'
      AND (own.key_thumbprint IS NOT NULL) = (row ->> 'keyThumbprint' IS NULL)
      AND own.user_id = row ->> 'userId' AND own.position IS NOT NULL AND own.retired_at IS NULL)
  ON CONFLICT DO NOTHING
  RETURNING event_id AS written, position, change`;

/** Outbox rows of the badges just written; none when the application does not subscribe to the event. */
export const INSERT_EVENTS = insertEventsOf(
  {
    id: "row ->> 'eventId'",
    event: "'badge:created'",
    payload: "row ->> 'payload'",
    createdAt: "row ->> 'issuedAt'",
  },
  `(SELECT value AS row FROM json_each(?1))
  JOIN badge ON badge.number = row ->> 'number' AND badge.event_id = row ->> 'eventId'`,
);

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

/**
 * Writes badges with their events, and reservations with their invitations, of one application. One transaction, one
 * round trip. A second round trip explains skipped rows: a repeated write, or a lost race.
 *
 * @param seen the highest numbers that the caller knows to be written
 * @returns `results`: one per write, in the same order; `written`: the highest numbers that were written; `isFirstTry`: no
 *   earlier try of this call may still be written
 */
export async function writeBadges(
  db: Database,
  applicationId: ApplicationId,
  writes: readonly BadgeWrite[],
  seen: HighWater,
): Promise<{ results: WriteResult[]; written: HighWater; isFirstTry: boolean }> {
  const tripsBefore = db.roundTrips;
  const { written, events, highest } = await insertAll(db, applicationId, writes, seen);
  const isFirstTry = db.roundTrips - tripsBefore === 1;
  // Of several requests with the same Idempotency-Key in one transaction, only the first was written.
  const firstOf = new Map(writes.toReversed().map((write) => [keyOf(write), write]));
  const isWritten = (write: BadgeWrite) => written.has(keyOf(write)) && firstOf.get(keyOf(write)) === write;
  const skipped = writes.filter((write) => !isWritten(write));
  const explained = await explainSkipped(db, applicationId, skipped);
  const results = writes.map((write): WriteResult => {
    const eventPending = write.kind === "issue" && events.has(write.eventId);
    return explained.get(write) ?? { kind: "written", number: write.number, eventPending };
  });
  return { results, written: highest, isFirstTry };
}

/** Identifies a write among the rows that its INSERT returns. */
const keyOf = (write: BadgeWrite): string => (write.kind === "issue" ? write.eventId : write.invitation);

async function insertAll(
  db: Database,
  applicationId: ApplicationId,
  writes: readonly BadgeWrite[],
  seen: HighWater,
): Promise<{ written: Set<string>; events: Set<string>; highest: HighWater }> {
  const issues = writes.filter((write) => write.kind === "issue");
  const reservations = writes.filter((write) => write.kind === "reserve");
  const badges = withTurnSteps(issues.map(({ payload: _, ...badge }) => badge));
  const events = issues.map(({ number, eventId, payload, issuedAt }) => ({ number, eventId, payload, issuedAt }));
  const results = await db.atPrimary((d1) => {
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
