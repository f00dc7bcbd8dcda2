import * as z from "zod";
import type { ApplicationId, DeviceId } from "../../shared/identifiers.ts";
import { STORED_STATES, type StoredState } from "../../shared/schema.ts";
import { changeOf } from "../../shared/storage/high-water.ts";
import type { Database, Query } from "./database.ts";

/**
 * The badges of a device, as device calls look them up: each is one statement that searches an index a fixed number of times,
 * however many users and keys the device has had.
 */

/** The key of a badge (contract section 1). `device` is the keyed digest of the udid. */
export interface UserDevice {
  applicationId: ApplicationId;
  device: DeviceId;
  userId: string;
}

/** The first two parameters of each statement are the application and the device. */
const IS_OF_DEVICE = `issued.application_id = ?1 AND issued.device = ?2 AND issued.position IS NOT NULL
  AND issued.retired_at IS NULL`;

/** The number and turn of the badge with the highest turn above 1, by `badge_device_turn`. */
const last = (isBound: 0 | 1): string => `
  SELECT issued.number AS number, issued.turn AS turn FROM badge AS issued
  WHERE ${IS_OF_DEVICE} AND (issued.key_thumbprint IS NOT NULL) = ${isBound} AND issued.turn > 1
  ORDER BY issued.turn DESC LIMIT 1`;

/** The number of the only badge, when none has a turn above 1. Naming `user_id` makes SQLite search by `badge_user_device`. */
const only = (isBound: 0 | 1): string => `
  (SELECT issued.number FROM badge AS issued
   WHERE ${IS_OF_DEVICE} AND (issued.key_thumbprint IS NOT NULL) = ${isBound} AND issued.user_id IS NOT NULL LIMIT 1)`;

/** The number of the device's current badge (turns.ts). */
const CURRENT = `coalesce(
  (SELECT number FROM (SELECT * FROM (${last(0)}) UNION ALL SELECT * FROM (${last(1)})) ORDER BY turn DESC LIMIT 1),
  ${only(0)}, ${only(1)})`;

/**
 * The number of the badge that signs with a proof (contract section 15): of the badges bound to its key the current one; if
 * there is none, the current unbound one. If there is none either, any badge, whose key is another.
 */
const CURRENT_OF_KEY = `coalesce(
  (SELECT issued.number FROM badge AS issued WHERE ${IS_OF_DEVICE} AND issued.key_thumbprint = ?3
   ORDER BY issued.turn DESC LIMIT 1),
  (SELECT number FROM (${last(0)})), ${only(0)}, (SELECT number FROM (${last(1)})), ${only(1)})`;

const storedState = z.enum(STORED_STATES);

/** A user device's badge, in any state. Times are milliseconds, or null. */
export interface StoredBadge {
  number: number;
  metadata: string | null;
  state: StoredState;
  expiresAt: number | null;
  /** Of the key that it is bound to; null: it is not bound. */
  keyThumbprint: string | null;
  rebindUntil: number | null;
  change: number;
  /** Number of the device's current badge: the one returned by its last login. */
  currentNumber: number;
}

const SELECT_BADGE: Query = {
  sql: `
    SELECT badge.number, badge.metadata, badge.state, badge.expires_at, badge.key_thumbprint, badge.rebind_until,
      ${changeOf("badge")}, ${CURRENT}
    FROM badge
    WHERE badge.application_id = ?1 AND badge.device = ?2 AND (badge.key_thumbprint IS NOT NULL) IN (0, 1)
      AND badge.user_id = ?3 AND badge.position IS NOT NULL AND badge.retired_at IS NULL`,
  bind: ({ applicationId, device, userId }) => [applicationId, device, userId],
};

export const selectBadge = (): Query => SELECT_BADGE;

const badgeRow = z
  .tuple([
    z.number(),
    z.string().nullable(),
    storedState,
    z.number().nullable(),
    z.string().nullable(),
    z.number().nullable(),
    z.number(),
    z.number(),
  ])
  .optional();

/** A user device's badge, in any state. One round trip. */
export async function findBadge(db: Database, userDevice: UserDevice): Promise<StoredBadge | undefined> {
  const [first] = await db.rows(SELECT_BADGE, { ...userDevice });
  const row = badgeRow.parse(first);
  if (!row) return undefined;
  const [number, metadata, state, expiresAt, keyThumbprint, rebindUntil, change, currentNumber] = row;
  return { number, metadata, state, expiresAt, keyThumbprint, rebindUntil, change, currentNumber };
}

/** A badge of a device, as signing needs it. */
export interface SigningBadge {
  number: number;
  signingKeyId: number | null;
  state: StoredState;
  /** Milliseconds, or null. */
  expiresAt: number | null;
  position: number;
  keyThumbprint: string | null;
}

const selectSigningBadge = (condition: string, ...parameters: string[]): Query => ({
  sql: `
    SELECT badge.number, badge.signing_key_id, badge.state, badge.expires_at, badge.position, badge.key_thumbprint
    FROM badge WHERE ${condition}`,
  bind: ({ applicationId, device, ...values }) => [applicationId, device, ...parameters.map((name) => values[name])],
});

const SELECT_CURRENT = selectSigningBadge(`badge.number = ${CURRENT}`);
const SELECT_CURRENT_OF_KEY = selectSigningBadge(`badge.number = ${CURRENT_OF_KEY}`, "thumbprint");
/** The plus signs keep SQLite from searching by device, which would read all of its badges. */
const SELECT_NUMBERED = selectSigningBadge(
  "badge.number = ?3 AND +badge.application_id = ?1 AND +badge.device = ?2 AND badge.position IS NOT NULL",
  "number",
);

export const selectCurrentBadge = (): Query => SELECT_CURRENT;

const signingBadgeRow = z
  .tuple([z.number(), z.number().nullable(), storedState, z.number().nullable(), z.number(), z.string().nullable()])
  .optional();

/**
 * The badge of a device that signs (contract section 15), in any state; its key may be another than the one that was proved.
 * One round trip.
 *
 * @param thumbprint of the key that was proved; null: none
 * @param number of the badge that is to sign, which may have ended; null: the one that the key chooses, or the current one
 */
export async function findSigningBadge(
  db: Database,
  device: Omit<UserDevice, "userId">,
  thumbprint: string | null,
  number: number | null,
): Promise<SigningBadge | undefined> {
  const [first] = await db.rows(signingQuery(thumbprint, number), { ...device, thumbprint, number });
  const row = signingBadgeRow.parse(first);
  if (!row) return undefined;
  const [found, signingKeyId, state, expiresAt, position, keyThumbprint] = row;
  return { number: found, signingKeyId, state, expiresAt, position, keyThumbprint };
}

function signingQuery(thumbprint: string | null, number: number | null): Query {
  if (number !== null) return SELECT_NUMBERED;
  return thumbprint === null ? SELECT_CURRENT : SELECT_CURRENT_OF_KEY;
}
