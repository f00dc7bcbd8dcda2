import * as z from "zod";
import { STORED_STATES } from "../../shared/badge-life/states.ts";
import { type ApplicationId, type DeviceId, invitationDigest } from "../../shared/identifiers.ts";
import { isRecent, TICKED_AT } from "./clock.ts";
import type { Database } from "./database.ts";

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

/** Result of a look near the caller, and how far it may be trusted (contract section 16). */
export interface Look<Badge> {
  badge: Badge | undefined;
  authority: Authority;
}

type Authority =
  /** The primary's: it decides. */
  | "primary"
  /** From a copy that is as new as the caller's bookmark and recent: a badge may be accepted, if nothing is to be written. */
  | "recent-copy"
  /** From a copy that may be too old: the primary decides. */
  | "hint";

/** A user device's badge, in any state. Times are milliseconds, or null. */
const storedBadge = z.object({
  number: z.number(),
  metadata: z.string().nullable(),
  state: z.enum(STORED_STATES),
  expiresAt: z.number().nullable(),
  /** Of the key that it is bound to; null: it is not bound. */
  keyThumbprint: z.string().nullable(),
  rebindUntil: z.number().nullable(),
  /** Digest of the token that reserved its number; null: none did. */
  invitation: invitationDigest.nullable(),
  /** Number of the device's current badge: the one returned by its last login. */
  currentNumber: z.number(),
});
export type StoredBadge = z.infer<typeof storedBadge>;
/** Made once: that takes longer than a check by it. */
const foundBadge = storedBadge.optional();

/** @param tickedAt an SQL expression: of a copy, when the clock row was written */
const selectBadge = (tickedAt: string): string => `
  SELECT badge.number, badge.metadata, badge.state, badge.expires_at AS expiresAt, badge.key_thumbprint AS keyThumbprint,
    badge.rebind_until AS rebindUntil, badge.invitation, ${CURRENT} AS currentNumber, ${tickedAt} AS tickedAt
  FROM badge
  WHERE badge.application_id = ?1 AND badge.device = ?2 AND (badge.key_thumbprint IS NOT NULL) IN (0, 1)
    AND badge.user_id = ?3 AND badge.position IS NOT NULL AND badge.retired_at IS NULL`;

export const SELECT_BADGE = selectBadge("NULL");
const SELECT_BADGE_OF_COPY = selectBadge(TICKED_AT);

/** A user device's badge, in any state, by the primary. One round trip. */
export async function findBadge(
  db: Database,
  { applicationId, device, userId }: UserDevice,
): Promise<StoredBadge | undefined> {
  const [badge] = await db.primaryRows(storedBadge, SELECT_BADGE, [applicationId, device, userId]);
  return badge;
}

/**
 * The same, looked for near the caller. One round trip; two when the copy fails.
 *
 * @param bookmark null: the caller sent none
 * @param now milliseconds
 */
export async function lookForBadge(
  db: Database,
  { applicationId, device, userId }: UserDevice,
  bookmark: string | null,
  now: number,
): Promise<Look<StoredBadge>> {
  const sql = bookmark === null ? SELECT_BADGE : SELECT_BADGE_OF_COPY;
  const { rows, isPrimary } = await db.nearRows(sql, [applicationId, device, userId], bookmark);
  return { badge: foundBadge.parse(rows[0]), authority: authorityOf(isPrimary, rows[0], now) };
}

/** `tickedAt` is null if the caller sent no bookmark, or the clock row was never written. */
const tickedRow = z.object({ tickedAt: z.number().nullable() }).optional();

function authorityOf(isPrimary: boolean, row: unknown, now: number): Authority {
  if (isPrimary) return "primary";
  const ticked = tickedRow.parse(row);
  return ticked && isRecent(ticked.tickedAt, now) ? "recent-copy" : "hint";
}

/** A badge of a device, as signing needs it. Times are milliseconds, or null. */
const signingBadge = z.object({
  number: z.number(),
  signingKeyId: z.number().nullable(),
  state: z.enum(STORED_STATES),
  expiresAt: z.number().nullable(),
  position: z.number(),
  keyThumbprint: z.string().nullable(),
  /** Null: it has begun. */
  startsAt: z.number().nullable(),
});
export type SigningBadge = z.infer<typeof signingBadge>;
const foundSigningBadge = signingBadge.optional();

interface SigningSql {
  atPrimary: string;
  ofCopy: string;
}

function selectSigning(condition: string): SigningSql {
  const select = (tickedAt: string): string => `
    SELECT badge.number, badge.signing_key_id AS signingKeyId, badge.state, badge.expires_at AS expiresAt, badge.position,
      badge.key_thumbprint AS keyThumbprint, badge.starts_at AS startsAt, ${tickedAt} AS tickedAt
    FROM badge WHERE ${condition}`;
  return { atPrimary: select("NULL"), ofCopy: select(TICKED_AT) };
}

export const SELECT_CURRENT_BADGE = selectSigning(`badge.number = ${CURRENT}`);
const SELECT_CURRENT_OF_KEY = selectSigning(`badge.number = ${CURRENT_OF_KEY}`);
/** The plus signs keep SQLite from searching by device, which would read all of its badges. */
const SELECT_NUMBERED = selectSigning(
  "badge.number = ?3 AND +badge.application_id = ?1 AND +badge.device = ?2 AND badge.position IS NOT NULL",
);

/** Which badge of which device is to sign (contract section 15). */
export interface Signer extends Omit<UserDevice, "userId"> {
  /** Of the key that was proved; null: none. */
  thumbprint: string | null;
  /** Of the badge that is to sign, which may have ended; null: the one that the key chooses, or the current one. */
  number: number | null;
}

/** The badge that signs, in any state, by the primary; its key may be another than the one that was proved. One round trip. */
export async function findSigningBadge(db: Database, signer: Signer): Promise<SigningBadge | undefined> {
  const { sql, values } = statementOf(signer);
  const [badge] = await db.primaryRows(signingBadge, sql.atPrimary, values);
  return badge;
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
  const { sql, values } = statementOf(signer);
  const { rows, isPrimary } = await db.nearRows(sql.ofCopy, values, bookmark);
  return { badge: foundSigningBadge.parse(rows[0]), authority: authorityOf(isPrimary, rows[0], now) };
}

function statementOf({ applicationId, device, thumbprint, number }: Signer): { sql: SigningSql; values: unknown[] } {
  if (number !== null) return { sql: SELECT_NUMBERED, values: [applicationId, device, number] };
  if (thumbprint !== null) return { sql: SELECT_CURRENT_OF_KEY, values: [applicationId, device, thumbprint] };
  return { sql: SELECT_CURRENT_BADGE, values: [applicationId, device] };
}
