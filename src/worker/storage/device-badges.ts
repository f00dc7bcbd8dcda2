import * as z from "zod";
import {
  type ApplicationId,
  type DeviceId,
  type InvitationDigest,
  invitationDigest,
} from "../../shared/identifiers.ts";
import { STORED_STATES, type StoredState } from "../../shared/schema.ts";
import { isRecent, TICKED_AT } from "./clock.ts";
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

/** Result of a look near the caller, and how far it may be trusted (contract section 16). */
export interface Look<Badge> {
  badge: Badge | undefined;
  authority: Authority;
}

export type Authority =
  /** The primary's: it decides. */
  | "primary"
  /** From a copy that is as new as the caller's bookmark and recent: a badge may be accepted, if nothing is to be written. */
  | "recent-copy"
  /** From a copy that may be too old: the primary decides. */
  | "hint";

/** A user device's badge, in any state. Times are milliseconds, or null. */
export interface StoredBadge {
  number: number;
  metadata: string | null;
  state: StoredState;
  expiresAt: number | null;
  /** Of the key that it is bound to; null: it is not bound. */
  keyThumbprint: string | null;
  rebindUntil: number | null;
  /** Digest of the token that reserved its number; null: none did. */
  invitation: InvitationDigest | null;
  /** Number of the device's current badge: the one returned by its last login. */
  currentNumber: number;
}

/** @param tickedAt an SQL expression: of a copy, when the clock row was written */
const badgeQuery = (tickedAt: string): Query => ({
  sql: `
    SELECT badge.number, badge.metadata, badge.state, badge.expires_at, badge.key_thumbprint, badge.rebind_until,
      badge.invitation, ${CURRENT} AS current_number, ${tickedAt} AS ticked_at
    FROM badge
    WHERE badge.application_id = ?1 AND badge.device = ?2 AND (badge.key_thumbprint IS NOT NULL) IN (0, 1)
      AND badge.user_id = ?3 AND badge.position IS NOT NULL AND badge.retired_at IS NULL`,
  bind: ({ applicationId, device, userId }) => [applicationId, device, userId],
});

const SELECT_BADGE = badgeQuery("NULL");
const SELECT_BADGE_OF_COPY = badgeQuery(TICKED_AT);

export const selectBadge = (): Query => SELECT_BADGE;

const badgeRow = z
  .tuple([
    z.number(),
    z.string().nullable(),
    storedState,
    z.number().nullable(),
    z.string().nullable(),
    z.number().nullable(),
    invitationDigest.nullable(),
    z.number(),
    z.number().nullable(),
  ])
  .optional();

function toBadge(row: unknown): { badge: StoredBadge; tickedAt: number | null } | undefined {
  const parsed = badgeRow.parse(row);
  if (!parsed) return undefined;
  const [number, metadata, state, expiresAt, keyThumbprint, rebindUntil, invitation, currentNumber, tickedAt] = parsed;
  const badge = { number, metadata, state, expiresAt, keyThumbprint, rebindUntil, invitation, currentNumber };
  return { badge, tickedAt };
}

/** A user device's badge, in any state, by the primary. One round trip. */
export async function findBadge(db: Database, userDevice: UserDevice): Promise<StoredBadge | undefined> {
  const [row] = await db.primaryRows(SELECT_BADGE, { ...userDevice });
  return toBadge(row)?.badge;
}

/**
 * The same, looked for near the caller. One round trip; two when the copy fails.
 *
 * @param bookmark null: the caller sent none
 * @param now milliseconds
 */
export async function lookForBadge(
  db: Database,
  userDevice: UserDevice,
  bookmark: string | null,
  now: number,
): Promise<Look<StoredBadge>> {
  const query = bookmark === null ? SELECT_BADGE : SELECT_BADGE_OF_COPY;
  const { rows, isPrimary } = await db.nearRows(query, { ...userDevice }, bookmark);
  const found = toBadge(rows[0]);
  return { badge: found?.badge, authority: authorityOf(isPrimary, found?.tickedAt, now) };
}

/**
 * @param tickedAt undefined: there is no row to read it from; null: the caller sent no bookmark, or the clock row was never
 * written
 */
function authorityOf(isPrimary: boolean, tickedAt: number | null | undefined, now: number): Authority {
  if (isPrimary) return "primary";
  return tickedAt !== undefined && isRecent(tickedAt, now) ? "recent-copy" : "hint";
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
  /** Milliseconds, or null: it has begun. */
  startsAt: number | null;
}

interface SigningQueries {
  atPrimary: Query;
  ofCopy: Query;
}

function signingQueries(condition: string, ...parameters: string[]): SigningQueries {
  const query = (tickedAt: string): Query => ({
    sql: `
    SELECT badge.number, badge.signing_key_id, badge.state, badge.expires_at, badge.position, badge.key_thumbprint, badge.starts_at,
      ${tickedAt} AS ticked_at
    FROM badge WHERE ${condition}`,
    bind: ({ applicationId, device, ...values }) => [applicationId, device, ...parameters.map((name) => values[name])],
  });
  return { atPrimary: query("NULL"), ofCopy: query(TICKED_AT) };
}

const SELECT_CURRENT = signingQueries(`badge.number = ${CURRENT}`);
const SELECT_CURRENT_OF_KEY = signingQueries(`badge.number = ${CURRENT_OF_KEY}`, "thumbprint");
/** The plus signs keep SQLite from searching by device, which would read all of its badges. */
const SELECT_NUMBERED = signingQueries(
  "badge.number = ?3 AND +badge.application_id = ?1 AND +badge.device = ?2 AND badge.position IS NOT NULL",
  "number",
);

export const selectCurrentBadge = (): Query => SELECT_CURRENT.atPrimary;

const signingBadgeRow = z
  .tuple([
    z.number(),
    z.number().nullable(),
    storedState,
    z.number().nullable(),
    z.number(),
    z.string().nullable(),
    z.number().nullable(),
    z.number().nullable(),
  ])
  .optional();

/** Which badge of which device is to sign (contract section 15). */
export interface Signer extends Omit<UserDevice, "userId"> {
  /** Of the key that was proved; null: none. */
  thumbprint: string | null;
  /** Of the badge that is to sign, which may have ended; null: the one that the key chooses, or the current one. */
  number: number | null;
}

/** The badge that signs, in any state, by the primary; its key may be another than the one that was proved. One round trip. */
export async function findSigningBadge(db: Database, signer: Signer): Promise<SigningBadge | undefined> {
  const [row] = await db.primaryRows(queriesOf(signer).atPrimary, { ...signer });
  return toSigningBadge(row)?.badge;
}

/**
 * The same, looked for near the caller. One round trip; two when the copy fails.
 *
 * @param now milliseconds
 */
export async function lookForSigningBadge(
  db: Database,
  signer: Signer,
  bookmark: string,
  now: number,
): Promise<Look<SigningBadge>> {
  const { rows, isPrimary } = await db.nearRows(queriesOf(signer).ofCopy, { ...signer }, bookmark);
  const found = toSigningBadge(rows[0]);
  return { badge: found?.badge, authority: authorityOf(isPrimary, found?.tickedAt, now) };
}

function toSigningBadge(row: unknown): { badge: SigningBadge; tickedAt: number | null } | undefined {
  const parsed = signingBadgeRow.parse(row);
  if (!parsed) return undefined;
  const [number, signingKeyId, state, expiresAt, position, keyThumbprint, startsAt, tickedAt] = parsed;
  return { badge: { number, signingKeyId, state, expiresAt, position, keyThumbprint, startsAt }, tickedAt };
}

function queriesOf({ thumbprint, number }: Signer): SigningQueries {
  if (number !== null) return SELECT_NUMBERED;
  return thumbprint === null ? SELECT_CURRENT : SELECT_CURRENT_OF_KEY;
}
