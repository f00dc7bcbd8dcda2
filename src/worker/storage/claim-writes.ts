import type { NewBadge } from "./badge-writes.ts";
import type { Database } from "./database.ts";
import { highestTurn, withTurnSteps } from "./turns.ts";
import { writtenIds } from "./written-ids.ts";

/** A reserved number to be issued to a user device, which claims the invitation, together with the event that tells of it. */
export interface Claim extends Omit<NewBadge, "kind" | "issuedAt"> {
  /** Digest of the invitation token. */
  digest: string;
  /** The number that the user device has so far and that is retired by this, or null. */
  replacedNumber: number | null;
  /** Milliseconds. */
  claimedAt: number;
}

/** `overtaken`: something moved since the request looked; it must look and decide again. */
export type ClaimWriteResult = { kind: "written"; eventPending: boolean } | { kind: "overtaken" };

/** The claims as rows: they come as one JSON parameter, because D1 binds at most 100. */
const CLAIMS = "(SELECT key AS place, value AS row FROM json_each(?1))";

/** The same, as far as this very write claimed them, or an earlier one of the same request. */
const OURS = `${CLAIMS} JOIN invitation AS ours
    ON ours.digest = row ->> 'digest' AND ours.claim_event_id = row ->> 'eventId'`;

/** Only a pending invitation, in time, and only while the user device has the badge that the payload speaks of. */
export const CLAIM_INVITATIONS = `
  UPDATE invitation SET state = 'claimed', ended_at = row ->> 'claimedAt', claim_device = row ->> 'device',
    claim_user_id = row ->> 'userId', claim_event_id = row ->> 'eventId'
  FROM ${CLAIMS}
  WHERE digest = row ->> 'digest' AND application_id = ?2 AND state = 'pending'
    AND expires_at_time > row ->> 'claimedAt'
    AND row ->> 'replacedNumber' IS (SELECT badge.number FROM badge
      WHERE badge.application_id = ?2 AND badge.device = row ->> 'device' AND badge.user_id = row ->> 'userId'
        AND badge.position IS NOT NULL)
  RETURNING claim_event_id AS written`;

const RETIRE_REPLACED = `
  UPDATE badge SET position = NULL, retired_at = row ->> 'claimedAt' FROM ${OURS}
  WHERE badge.number = row ->> 'replacedNumber'`;

export const ISSUE_RESERVED = `
  UPDATE badge SET device = row ->> 'device', user_id = row ->> 'userId', metadata = row ->> 'metadata',
    signing_key_id = row ->> 'signingKeyId', event_id = row ->> 'eventId', issued_at = row ->> 'claimedAt',
    position = place + 1 + coalesce((SELECT max(last.position) FROM badge AS last
      WHERE last.application_id = ?2 AND last.position IS NOT NULL), 0),
    turn = row ->> 'turnStep' + ${highestTurn({ applicationId: "?2", device: "row ->> 'device'" })}
  FROM ${OURS}
  WHERE badge.number = row ->> 'number' AND badge.invitation = row ->> 'digest' AND badge.position IS NULL
    AND badge.retired_at IS NULL`;

/** The outbox rows of the badges just issued; none when the application has no webhook URL. */
export const INSERT_EVENTS = `
  INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
  SELECT ?2, row ->> 'eventId', 'badge:created', row ->> 'payload',
    iif(application.webhook_held_at IS NULL, 'pending', 'held'), 0, row ->> 'claimedAt'
  FROM ${OURS}
  JOIN application ON application.id = ?2 AND application.webhook_url IS NOT NULL
  WHERE true
  ON CONFLICT DO NOTHING
  RETURNING id AS written`;

const SELECT_OURS = `SELECT ours.claim_event_id AS written FROM ${OURS}`;

/**
 * Consumes the tokens, retires the badges that the user devices had, issues the reserved ones and records the events, in
 * one transaction and one round trip: of each claim all or nothing. A second round trip asks about claims that were
 * passed over: they are overtaken, or repeated.
 *
 * @param claims of one application; no two of one invitation or of one user device
 * @returns one result a claim, in the same order
 */
export async function writeClaims(
  db: Database,
  applicationId: string,
  claims: readonly Claim[],
): Promise<ClaimWriteResult[]> {
  const rows = JSON.stringify(withTurnSteps(claims.map(({ payload: _, ...row }) => row)));
  const events = JSON.stringify(
    claims.map(({ digest, eventId, payload, claimedAt }) => ({ digest, eventId, payload, claimedAt })),
  );
  const [claimed, inserted] = await db.run((_, d1) => {
    const bound = (sql: string, json: string) => d1.prepare(sql).bind(json, applicationId);
    const replaces = claims.some(({ replacedNumber }) => replacedNumber !== null);
    return d1.batch([
      bound(CLAIM_INVITATIONS, rows),
      bound(INSERT_EVENTS, events),
      ...(replaces ? [d1.prepare(RETIRE_REPLACED).bind(rows)] : []),
      bound(ISSUE_RESERVED, rows),
    ]);
  });
  const isClaimed = writtenIds(claimed);
  const isPending = writtenIds(inserted);
  const passedOver = claims.filter(({ eventId }) => !isClaimed.has(eventId));
  const isRepeated = passedOver.length === 0 ? new Set() : await selectOurs(db, passedOver);
  return claims.map(({ eventId }) => {
    if (isClaimed.has(eventId)) return { kind: "written", eventPending: isPending.has(eventId) };
    return isRepeated.has(eventId) ? { kind: "written", eventPending: true } : { kind: "overtaken" };
  });
}

async function selectOurs(db: Database, claims: readonly Claim[]): Promise<Set<string>> {
  const rows = JSON.stringify(claims.map(({ digest, eventId }) => ({ digest, eventId })));
  return writtenIds(await db.run((_, d1) => d1.prepare(SELECT_OURS).bind(rows).all()));
}
