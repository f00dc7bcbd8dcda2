import type { ApplicationId, InvitationDigest } from "../../shared/identifiers.ts";
import { isNotBlocked } from "../../shared/storage/blocked-users.ts";
import { writtenIds } from "../../shared/storage/d1.ts";
import {
  changeOf,
  type HighWater,
  highestOf,
  lastChange,
  lastPosition,
  renewEpochIfRestored,
} from "../../shared/storage/high-water.ts";
import { insertEventsOf } from "../../shared/storage/outbox.ts";
import type { NewBadge } from "./badge-writes.ts";
import type { Database } from "./database.ts";
import { highestTurn, withTurnSteps } from "./turns.ts";

/** A reserved number to be issued to the user device that claims its invitation, with the `badge:created` event. */
export interface Claim extends Omit<NewBadge, "kind" | "issuedAt"> {
  /** Digest of the invitation token. */
  digest: InvitationDigest;
  /** The user device's present badge as it was read, which this one supersedes; null: it has none. */
  superseded: { number: number; readChange: number } | null;
  /** The `badge:replaced` event; null when nothing is superseded, or only a revoked badge. */
  replacedEvent: { id: string; payloadUpToChange: string } | null;
  /** End of the badge in milliseconds, or null. */
  expiresAt: number | null;
  /** Milliseconds. */
  claimedAt: number;
}

/** `overtaken`: the rows have changed since the request read them; it must read and decide again. */
export type ClaimWriteResult = { kind: "written"; events: string[] } | { kind: "overtaken" };

/** The claims as rows. They are passed as one JSON parameter, because D1 binds at most 100. */
const CLAIMS = "(SELECT key AS row_index, value AS row FROM json_each(?1))";

/** The claims whose invitations this write claimed, or an earlier one of the same request did. */
const OURS = `${CLAIMS} JOIN invitation AS ours
    ON ours.digest = row ->> 'digest' AND ours.claim_event_id = row ->> 'eventId'`;

/** Each claim uses two change numbers: one for the superseded badge and one for the new one. */
const FIRST_CHANGE = `row_index * 2 + 1 + max(${lastChange("?2")}, ?4)`;

/**
 * Claims an invitation only if it is pending and not past its time, the user device still has the badge that was read,
 * and the user is not blocked. The plus sign keeps SQLite from searching by application, which would read all of the
 * application's invitations.
 */
export const CLAIM_INVITATIONS = `
  UPDATE invitation SET state = 'claimed', ended_at = row ->> 'claimedAt', claim_device = row ->> 'device',
    claim_user_id = row ->> 'userId', claim_event_id = row ->> 'eventId'
  FROM ${CLAIMS}
  WHERE digest = row ->> 'digest' AND +application_id = ?2 AND state = 'pending'
    AND expires_at_time > row ->> 'claimedAt'
    AND row ->> '$.superseded.number' IS (SELECT badge.number FROM badge
      WHERE badge.application_id = ?2 AND badge.device = row ->> 'device'
        AND (badge.key_thumbprint IS NOT NULL) IN (0, 1) AND badge.user_id = row ->> 'userId'
        AND badge.position IS NOT NULL AND badge.retired_at IS NULL)
    AND row ->> '$.superseded.readChange' IS (SELECT ${changeOf("badge")} FROM badge
      WHERE badge.number = row ->> '$.superseded.number')
    AND ${isNotBlocked("row ->> 'userId'")}
  RETURNING claim_event_id AS written`;

/** Runs before the badges change, because their update moves the last change number. */
const INSERT_REPLACED_EVENTS = insertEventsOf(
  {
    id: "row ->> '$.replacedEvent.id'",
    event: "'badge:replaced'",
    payload: `(row ->> '$.replacedEvent.payloadUpToChange') || (${FIRST_CHANGE}) || '}}'`,
    createdAt: "row ->> 'claimedAt'",
  },
  `${OURS} JOIN badge ON badge.number = row ->> '$.superseded.number' AND badge.retired_at IS NULL`,
  "row ->> '$.replacedEvent.id' IS NOT NULL",
);

/** A revoked badge stays revoked and keeps its change number: nothing that callers see changes. */
const SUPERSEDE = `
  UPDATE badge SET retired_at = row ->> 'claimedAt', ended_at = coalesce(badge.ended_at, row ->> 'claimedAt'),
    state = iif(badge.state = 'revoked', 'revoked', 'replaced'),
    changed_at = iif(badge.state = 'revoked', badge.changed_at, row ->> 'claimedAt'),
    change = iif(badge.state = 'revoked', badge.change, ${FIRST_CHANGE}),
    status_change = iif(badge.state = 'revoked', badge.status_change, ${FIRST_CHANGE})
  FROM ${OURS}
  WHERE badge.number = row ->> '$.superseded.number' AND badge.retired_at IS NULL`;

/** The superseded badges already have their change numbers here, so each claim adds only one. */
export const ISSUE_RESERVED = `
  UPDATE badge SET device = row ->> 'device', user_id = row ->> 'userId', metadata = row ->> 'metadata',
    signing_key_id = row ->> 'signingKeyId', event_id = row ->> 'eventId', issued_at = row ->> 'claimedAt',
    expires_at = row ->> 'expiresAt', key_thumbprint = row ->> 'keyThumbprint', changed_at = row ->> 'claimedAt',
    position = row_index + 1 + max(${lastPosition("?2")}, ?3),
    change = row_index + 1 + max(${lastChange("?2")}, ?4),
    turn = row ->> 'turnStep' + ${highestTurn({ applicationId: "?2", device: "row ->> 'device'" })}
  FROM ${OURS}
  WHERE badge.number = row ->> 'number' AND badge.invitation = row ->> 'digest' AND badge.position IS NULL
    AND badge.retired_at IS NULL
  RETURNING position, change`;

/** Outbox rows of the badges just issued; none when the application does not subscribe to the event. */
export const INSERT_EVENTS = insertEventsOf(
  {
    id: "row ->> 'eventId'",
    event: "'badge:created'",
    payload: "row ->> 'payload'",
    createdAt: "row ->> 'claimedAt'",
  },
  OURS,
);

const SELECT_OURS = `SELECT ours.claim_event_id AS written FROM ${OURS}`;

/**
 * Consumes the tokens, supersedes the badges that the user devices had, issues the reserved ones and records the events.
 * One transaction, one round trip; each claim takes effect completely or not at all. A second round trip tells skipped
 * claims apart: repeated or overtaken.
 *
 * @param claims of one application; no two of the same invitation or user device
 * @param seen the highest numbers that the caller knows to be written
 * @returns `results`: one per claim, in the same order; `written`: the highest numbers that were written
 */
export async function writeClaims(
  db: Database,
  applicationId: ApplicationId,
  claims: readonly Claim[],
  seen: HighWater,
): Promise<{ results: ClaimWriteResult[]; written: HighWater }> {
  const rows = JSON.stringify(withTurnSteps(claims.map(({ payload: _, ...row }) => row)));
  const events = JSON.stringify(
    claims.map(({ digest, eventId, payload, claimedAt }) => ({ digest, eventId, payload, claimedAt })),
  );
  const supersedes = claims.some(({ superseded }) => superseded !== null);
  const outcome = await db.atPrimary((d1) => {
    const bound = (sql: string, json: string, ...more: unknown[]) => d1.prepare(sql).bind(json, applicationId, ...more);
    return d1.batch([
      renewEpochIfRestored(d1, applicationId, seen),
      bound(CLAIM_INVITATIONS, rows),
      bound(INSERT_EVENTS, events),
      ...(supersedes
        ? [INSERT_REPLACED_EVENTS, SUPERSEDE].map((sql) => bound(sql, rows, seen.position, seen.change))
        : []),
      bound(ISSUE_RESERVED, rows, seen.position, seen.change),
    ]);
  });
  const [, claimed, inserted, replaced] = outcome;
  const isClaimed = writtenIds(claimed);
  const isPending = new Set([...writtenIds(inserted), ...(supersedes ? writtenIds(replaced) : [])]);
  const skipped = claims.filter(({ eventId }) => !isClaimed.has(eventId));
  const isRepeated = skipped.length === 0 ? new Set() : await selectOurs(db, skipped);
  const results = claims.map(({ eventId, replacedEvent }): ClaimWriteResult => {
    const due = [eventId, ...(replacedEvent ? [replacedEvent.id] : [])];
    if (isClaimed.has(eventId)) return { kind: "written", events: due.filter((id) => isPending.has(id)) };
    return isRepeated.has(eventId) ? { kind: "written", events: due } : { kind: "overtaken" };
  });
  return { results, written: highestOf(outcome.at(-1)) };
}

async function selectOurs(db: Database, claims: readonly Claim[]): Promise<Set<string>> {
  const rows = JSON.stringify(claims.map(({ digest, eventId }) => ({ digest, eventId })));
  return writtenIds(await db.run((_, d1) => d1.prepare(SELECT_OURS).bind(rows).all()));
}
