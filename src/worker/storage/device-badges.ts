import { eq, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { ApplicationId, DeviceId } from "../../shared/identifiers.ts";
import { applicationHead, badge, heartbeat } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { isRecent } from "./heartbeat.ts";
import { isReadable, requireReadable } from "./readable.ts";
import { type Fields, type Placeholders, query, type RowOfStatement, type Statement, statement } from "./statement.ts";

/**
 * The badges of a device, as device calls look them up: each is one statement that searches an index a fixed number of
 * times, independent of the device's users and keys.
 *
 * A badge's `loginSequence` counts the logins of its device: a login sets it to one more than the highest among the
 * device's badges, so the badge with the highest is the device's current one. The index `badge_device_login` contains
 * only numbers above 1, so that the many devices with a single user cost no index rows. Every query about a device
 * therefore has two parts: that index, and, if it has nothing, `badge_user_device`, which finds the only badge, with
 * number 1. Both indexes have a device's unbound badges before its bound ones (contract section 15), so each part
 * searches both groups.
 */

/** What identifies a badge (contract section 1). `device` is the keyed digest of the udid. */
export interface UserDevice {
  applicationId: ApplicationId;
  device: DeviceId;
  userId: string;
}

type OfDevice = Placeholders<Omit<UserDevice, "userId">>;

const issued = alias(badge, "issued");

/** Names of a subquery's columns. */
const number = sql.identifier(badge.number.name);
const loginSequence = sql.identifier(badge.loginSequence.name);

/** Badges of the device that no other badge has superseded. */
const fromDevice = ({ applicationId, device }: OfDevice): SQL =>
  sql`FROM ${badge} AS ${issued} WHERE ${issued.applicationId} = ${applicationId} AND ${issued.device} = ${device}
    AND ${issued.ordinal} IS NOT NULL AND ${issued.supersededAt} IS NULL`;

const isBoundAs = (isBound: 0 | 1): SQL => sql`(${issued.keyThumbprint} IS NOT NULL) = ${isBound}`;

/** The number and login sequence number of the badge with the highest above 1, by `badge_device_login`. */
const last = (p: OfDevice, isBound: 0 | 1): SQL =>
  sql`SELECT ${issued.number} AS ${number}, ${issued.loginSequence} AS ${loginSequence} ${fromDevice(p)} AND ${isBoundAs(isBound)}
    AND ${issued.loginSequence} > 1 ORDER BY ${issued.loginSequence} DESC LIMIT 1`;

/** The number of the only badge, when none has a login sequence number above 1. Naming `user_id` makes SQLite search by `badge_user_device`. */
const only = (p: OfDevice, isBound: 0 | 1): SQL =>
  sql`(SELECT ${issued.number} ${fromDevice(p)} AND ${isBoundAs(isBound)} AND ${issued.userId} IS NOT NULL LIMIT 1)`;

/** The number of the device's current badge. */
const current = (p: OfDevice): SQL<number> =>
  sql`coalesce(
    (SELECT ${number} FROM (SELECT * FROM (${last(p, 0)}) UNION ALL SELECT * FROM (${last(p, 1)})) ORDER BY ${loginSequence} DESC LIMIT 1),
    ${only(p, 0)}, ${only(p, 1)})`;

/**
 * The number of the badge that signs with a proof (contract section 15): the current one of the badges bound to its
 * key; otherwise the current unbound one; otherwise any badge, which is bound to another key.
 */
const currentOfKey = (p: OfDevice & Placeholders<{ thumbprint: string | null }>): SQL =>
  sql`coalesce(
    (SELECT ${issued.number} ${fromDevice(p)} AND ${issued.keyThumbprint} = ${p.thumbprint} ORDER BY ${issued.loginSequence} DESC LIMIT 1),
    (SELECT ${number} FROM (${last(p, 0)})), ${only(p, 0)}, (SELECT ${number} FROM (${last(p, 1)})), ${only(p, 1)})`;

/** Result of a read at the nearest database, and where it comes from (contract section 16). */
interface NearestRead<Badge> {
  badge: Badge | undefined;
  source: ReadSource;
}

type ReadSource =
  /** Read from the primary, which decides. */
  | "primary"
  /** From a recent replica, at least as new as the caller's bookmark: it may accept a badge if nothing has to be written. */
  | "fresh-replica"
  /** From a replica that may be too old: the primary decides. */
  | "stale-replica";

/** Whether the device has such a badge; otherwise the row has only the application's head. */
const isFound = sql<number>`${badge.number} IS NOT NULL`;

interface Flags {
  isFound: number;
  isReadable: number;
}

/** The badge of the primary's row. @throws Unavailable while D1 lacks changes */
function readBadge<Badge extends Flags>(row: Badge | undefined): Badge | undefined {
  requireReadable(row);
  return row?.isFound === 1 ? row : undefined;
}

/** A look-up at the primary, and the same at a replica, which also returns the time of the replica's last heartbeat. */
interface LookUp<Values, Badge> {
  atPrimary: Statement<Values, Badge>;
  atReplica: Statement<Values, Badge & { tickedAt: number | null }>;
}

/** Builds both statements of a look-up of a device's badge. */
function lookUp<Values extends { applicationId: ApplicationId }, Selected extends Fields>(
  fieldsOf: (p: Placeholders<Values>) => Selected,
  condition: (p: Placeholders<Values>) => SQL,
) {
  const select = <Read extends Fields>(p: Placeholders<Values>, fields: Read) =>
    query(
      { ...fields, isFound, isReadable },
      (columns) => sql`SELECT ${columns} FROM ${applicationHead} LEFT JOIN ${badge} ON ${condition(p)}
        WHERE ${applicationHead.applicationId} = ${p.applicationId}`,
    );
  const tickedAt = sql<number | null>`(SELECT ${heartbeat.tickedAt} FROM ${heartbeat} WHERE ${heartbeat.id} = 1)`;
  return {
    atPrimary: statement((p: Placeholders<Values>) => select(p, fieldsOf(p))),
    atReplica: statement((p: Placeholders<Values>) => select(p, { ...fieldsOf(p), tickedAt })),
  };
}

/** A user device's badge. */
export const OF_USER = lookUp(
  (p: Placeholders<UserDevice>) => ({
    number: badge.number,
    metadata: badge.metadata,
    state: badge.state,
    expiresAt: badge.expiresAt,
    /** Thumbprint of the key that it is bound to; null if unbound. */
    keyThumbprint: badge.keyThumbprint,
    rebindUntil: badge.rebindUntil,
    /** Digest of the token that reserved its number; null if none did. */
    invitation: badge.invitation,
    /** Number of the device's current badge: the one returned by its last login. */
    currentNumber: current(p),
  }),
  (p) => sql`${badge.applicationId} = ${p.applicationId} AND ${badge.device} = ${p.device}
    AND (${badge.keyThumbprint} IS NOT NULL) IN (0, 1) AND ${badge.userId} = ${p.userId}
    AND ${badge.ordinal} IS NOT NULL AND ${badge.supersededAt} IS NULL`,
);

/** A user device's badge, in any state. Times are milliseconds, or null. */
export type StoredBadge = RowOfStatement<typeof OF_USER.atPrimary>;

/** Finds a user device's badge, in any state, at the primary. One round trip. */
export async function findBadge(db: Database, userDevice: UserDevice): Promise<StoredBadge | undefined> {
  const [found] = await db.allAtPrimary(OF_USER.atPrimary, userDevice);
  return readBadge(found);
}

/**
 * Like `findBadge`, but at the nearest database. One round trip; two when the replica fails.
 *
 * @param bookmark null if the caller sent none
 * @param now milliseconds
 */
export const findBadgeAtNearest = (
  db: Database,
  userDevice: UserDevice,
  bookmark: string | null,
  now: number,
): Promise<NearestRead<StoredBadge>> => readAtNearest(db, OF_USER, userDevice, bookmark, now);

async function readAtNearest<Values, Badge extends Flags>(
  db: Database,
  { atPrimary, atReplica }: LookUp<Values, Badge>,
  values: Values,
  bookmark: string | null,
  now: number,
): Promise<NearestRead<Badge>> {
  // Without a bookmark a replica is never trusted.
  const select: Statement<Values, Badge & { tickedAt?: number | null }> = bookmark === null ? atPrimary : atReplica;
  const { rows, isPrimary } = await db.allAtNearest(select, values, bookmark);
  const [found] = rows;
  if (isPrimary) return { badge: readBadge(found), source: "primary" };
  const isTrusted = found?.isReadable === 1 && isRecent(found.tickedAt ?? null, now);
  return { badge: found?.isFound === 1 ? found : undefined, source: isTrusted ? "fresh-replica" : "stale-replica" };
}

const SIGNING_FIELDS = {
  number: badge.number,
  signingKeyId: badge.signingKeyId,
  state: badge.state,
  expiresAt: badge.expiresAt,
  // Columns of an issued badge; only issued badges sign.
  ordinal: sql<number>`${badge.ordinal}`,
  keyThumbprint: badge.keyThumbprint,
  /** Null if the badge can sign from its issue on. */
  startsAt: badge.startsAt,
};

/** The device, and which of its badges signs (contract section 15). */
export interface Signer extends Omit<UserDevice, "userId"> {
  /** Thumbprint of the proved key; null without a proof. */
  thumbprint: string | null;
  /** Number of the badge that signs, which may have ended; null for the badge of the key, or the current one. */
  number: number | null;
}

const signing = (condition: (p: Placeholders<Signer>) => SQL) => lookUp(() => SIGNING_FIELDS, condition);

export const SIGNING = {
  current: signing((p) => eq(badge.number, current(p))),
  ofKey: signing((p) => eq(badge.number, currentOfKey(p))),
  /** The plus signs keep SQLite from searching by device, which would read all of its badges. */
  numbered: signing(
    (p) => sql`${badge.number} = ${p.number} AND +${badge.applicationId} = ${p.applicationId}
      AND +${badge.device} = ${p.device} AND ${badge.ordinal} IS NOT NULL`,
  ),
};

/** A badge of a device, as signing needs it. Times are milliseconds, or null. */
export type SigningBadge = RowOfStatement<typeof SIGNING.current.atPrimary>;

/**
 * Finds the badge that signs, in any state, at the primary. Its key may differ from the proved one. One round trip.
 */
export async function findSigningBadge(db: Database, signer: Signer): Promise<SigningBadge | undefined> {
  const [found] = await db.allAtPrimary(signingOf(signer).atPrimary, signer);
  return readBadge(found);
}

/**
 * Like `findSigningBadge`, but at the nearest database. One round trip; two when the replica fails.
 *
 * @param now milliseconds
 */
export const findSigningBadgeAtNearest = (
  db: Database,
  signer: Signer,
  bookmark: string,
  now: number,
): Promise<NearestRead<SigningBadge>> => readAtNearest(db, signingOf(signer), signer, bookmark, now);

function signingOf({ thumbprint, number }: Signer) {
  if (number !== null) return SIGNING.numbered;
  return thumbprint === null ? SIGNING.current : SIGNING.ofKey;
}
