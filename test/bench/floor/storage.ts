/**
 * The service's own statements, by hand: the same tables, rows and indexes. What changes in src/storage changes here, or
 * the benchmark compares two designs.
 */

export const SELECT_APPLICATION = `
  SELECT id, first_number, last_number, sealed_device_key, signature_lifetime_seconds,
    (SELECT json_group_array(digest) FROM application_secret WHERE application_id = ?1) AS digests,
    (SELECT json_group_array(json_object('id', id, 'kid', kid, 'publicKey', public_key, 'sealed', sealed) ORDER BY id)
      FROM signing_key WHERE application_id = ?1) AS signing_keys
  FROM application WHERE id = ?1`;

export interface ApplicationRow {
  id: string;
  first_number: number;
  last_number: number;
  sealed_device_key: string;
  signature_lifetime_seconds: number | null;
  digests: string;
  signing_keys: string;
}

const CURRENT_NUMBER = `coalesce(
    (SELECT given.number FROM badge AS given
      WHERE given.application_id = ?1 AND given.device = ?2 AND given.position IS NOT NULL AND given.turn > 1
      ORDER BY given.turn DESC LIMIT 1),
    (SELECT given.number FROM badge AS given
      WHERE given.application_id = ?1 AND given.device = ?2 AND given.position IS NOT NULL
        AND given.user_id IS NOT NULL
      LIMIT 1))`;

export const SELECT_BADGE = `
  SELECT number, metadata, ${CURRENT_NUMBER} AS current_number
  FROM badge WHERE application_id = ?1 AND device = ?2 AND user_id = ?3 AND position IS NOT NULL`;

export const SELECT_CURRENT_BADGE = `SELECT number, signing_key_id FROM badge WHERE number = ${CURRENT_NUMBER}`;

export const SELECT_PAGE = `
  SELECT number, user_id, metadata, position FROM badge
  WHERE application_id = ?1 AND position > ?2 AND position IS NOT NULL ORDER BY position LIMIT ?3`;

/** The turn of a device's next badge. The benchmark writes no two badges of one device at once. */
const NEXT_TURN = `1 + coalesce(
      (SELECT max(given.turn) FROM badge AS given
        WHERE given.application_id = ?2 AND given.device = row ->> 'device' AND given.position IS NOT NULL
          AND given.turn > 1),
      (SELECT 1 FROM badge AS given
        WHERE given.application_id = ?2 AND given.device = row ->> 'device' AND given.position IS NOT NULL
          AND given.user_id IS NOT NULL
        LIMIT 1),
      0)`;

export const INSERT_BADGES = `
  INSERT INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id, issued_at,
    position, turn)
  SELECT row ->> 'number', ?2, row ->> 'device', row ->> 'userId', row ->> 'metadata', row ->> 'signingKeyId',
    row ->> 'eventId', row ->> 'issuedAt',
    place + 1 + coalesce((SELECT max(position) FROM badge WHERE application_id = ?2 AND position IS NOT NULL), 0),
    ${NEXT_TURN}
  FROM (SELECT key AS place, value AS row FROM json_each(?1))
  WHERE true
  ON CONFLICT DO NOTHING
  RETURNING event_id AS written`;

export const INSERT_EVENTS = `
  INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
  SELECT ?2, row ->> 'eventId', 'badge:created', row ->> 'payload',
    iif(application.webhook_held_at IS NULL, 'pending', 'held'), 0, row ->> 'issuedAt'
  FROM (SELECT value AS row FROM json_each(?1))
  JOIN badge ON badge.number = row ->> 'number' AND badge.event_id = row ->> 'eventId'
  JOIN application ON application.id = ?2 AND application.webhook_url IS NOT NULL
  WHERE true
  ON CONFLICT DO NOTHING
  RETURNING id AS written`;

export const INSERT_RESERVATIONS = `
  INSERT INTO badge (number, application_id, invitation)
  SELECT row ->> 'number', ?2, row ->> 'invitation' FROM (SELECT value AS row FROM json_each(?1))
  WHERE NOT EXISTS (SELECT 1 FROM invitation WHERE digest = row ->> 'invitation')
  ON CONFLICT DO NOTHING`;

export const INSERT_INVITATIONS = `
  INSERT INTO invitation (digest, application_id, number, state, creator_device, expires_at, expires_at_time,
    created_at)
  SELECT row ->> 'invitation', ?2, row ->> 'number', 'pending', row ->> 'creatorDevice', row ->> 'expiresAt',
    row ->> 'expiresAtTime', row ->> 'createdAt'
  FROM (SELECT value AS row FROM json_each(?1))
  JOIN badge ON badge.number = row ->> 'number' AND badge.invitation = row ->> 'invitation'
  WHERE true
  ON CONFLICT DO NOTHING
  RETURNING digest AS written`;

export const SELECT_INVITATION = `
  SELECT invitation.*, (SELECT number FROM badge
    WHERE application_id = ?2 AND device = ?3 AND user_id = ?4 AND position IS NOT NULL) AS badge_number
  FROM invitation WHERE digest = ?1 AND application_id = ?2`;

const CLAIMS = "(SELECT key AS place, value AS row FROM json_each(?1))";

const OURS = `${CLAIMS} JOIN invitation AS ours
    ON ours.digest = row ->> 'digest' AND ours.claim_event_id = row ->> 'eventId'`;

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

export const ISSUE_RESERVED = `
  UPDATE badge SET device = row ->> 'device', user_id = row ->> 'userId', metadata = row ->> 'metadata',
    signing_key_id = row ->> 'signingKeyId', event_id = row ->> 'eventId', issued_at = row ->> 'claimedAt',
    position = place + 1 + coalesce((SELECT max(last.position) FROM badge AS last
      WHERE last.application_id = ?2 AND last.position IS NOT NULL), 0),
    turn = ${NEXT_TURN}
  FROM ${OURS}
  WHERE badge.number = row ->> 'number' AND badge.invitation = row ->> 'digest' AND badge.position IS NULL
    AND badge.retired_at IS NULL`;

export const INSERT_CLAIM_EVENTS = `
  INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
  SELECT ?2, row ->> 'eventId', 'badge:created', row ->> 'payload',
    iif(application.webhook_held_at IS NULL, 'pending', 'held'), 0, row ->> 'claimedAt'
  FROM ${OURS}
  JOIN application ON application.id = ?2 AND application.webhook_url IS NOT NULL
  WHERE true
  ON CONFLICT DO NOTHING
  RETURNING id AS written`;
