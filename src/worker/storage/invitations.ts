import { and, eq, getTableColumns, isNotNull, isNull, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import * as z from "zod";
import { type ApplicationId, deviceId, type InvitationDigest } from "../../shared/identifiers.ts";
import {
  badge,
  blockedUser,
  INVITATION_STATES,
  invitation,
  STORED_STATES,
  type StoredState,
} from "../../shared/schema.ts";
import { changeOf } from "../../shared/storage/high-water.ts";
import { type Database, queryOf } from "./database.ts";
import type { UserDevice } from "./device-badges.ts";

export type StoredInvitation = typeof invitation.$inferSelect;

/** An application's invitation. One round trip. */
export function findInvitation(
  db: Database,
  applicationId: ApplicationId,
  digest: InvitationDigest,
): Promise<StoredInvitation | undefined> {
  return db.run((orm) =>
    orm
      .select()
      .from(invitation)
      .where(and(eq(invitation.digest, digest), eq(invitation.applicationId, applicationId)))
      .get(),
  );
}

/** What decides whether a user device may claim an invitation. */
export interface InvitationForDevice
  extends Pick<
    StoredInvitation,
    | "number"
    | "state"
    | "expiresAtTime"
    | "badgeExpiresAtTime"
    | "creatorDevice"
    | "withSecret"
    | "claimDevice"
    | "claimUserId"
    | "claimEventId"
  > {
  isBlocked: boolean;
  /** The user device's badge, in any state; null: none. */
  badge: {
    number: number;
    change: number;
    metadata: string | null;
    state: StoredState;
    expiresAt: number | null;
    keyThumbprint: string | null;
    rebindUntil: number | null;
    name: string | null;
    startsAt: number | null;
    issuedAt: number;
  } | null;
}

const selectInvitationForDevice = queryOf((builder) => {
  const applicationId = sql.placeholder("applicationId");
  const userId = sql.placeholder("userId");
  const own = alias(badge, "own");
  const ownBadge = and(
    eq(own.applicationId, applicationId),
    eq(own.device, sql.placeholder("device")),
    sql`(${own.keyThumbprint} IS NOT NULL) IN (0, 1)`,
    eq(own.userId, userId),
    isNotNull(own.position),
    isNull(own.retiredAt),
  );
  const isBlocked = sql<number>`EXISTS (SELECT 1 FROM ${blockedUser}
    WHERE ${blockedUser.applicationId} = ${applicationId} AND ${blockedUser.userId} = ${userId})`;
  return builder
    .select({
      number: invitation.number,
      state: invitation.state,
      expiresAtTime: invitation.expiresAtTime,
      badgeExpiresAtTime: invitation.badgeExpiresAtTime,
      creatorDevice: invitation.creatorDevice,
      withSecret: invitation.withSecret,
      claimDevice: invitation.claimDevice,
      claimUserId: invitation.claimUserId,
      claimEventId: invitation.claimEventId,
      isBlocked: isBlocked.as("is_blocked"),
      // D1 mixes up result columns of the same name.
      ownNumber: sql`${own.number}`.as("own_number"),
      ownChange: sql`${sql.raw(changeOf("own"))}`.as("own_change"),
      ownMetadata: sql`${own.metadata}`.as("own_metadata"),
      ownState: sql`${own.state}`.as("own_state"),
      ownExpiresAt: sql`${own.expiresAt}`.as("own_expires_at"),
      ownKeyThumbprint: sql`${own.keyThumbprint}`.as("own_key_thumbprint"),
      ownRebindUntil: sql`${own.rebindUntil}`.as("own_rebind_until"),
      ownName: sql`${own.name}`.as("own_name"),
      ownStartsAt: sql`${own.startsAt}`.as("own_starts_at"),
      ownIssuedAt: sql`${own.issuedAt}`.as("own_issued_at"),
    })
    .from(invitation)
    .leftJoin(own, ownBadge)
    .where(and(eq(invitation.digest, sql.placeholder("digest")), eq(invitation.applicationId, applicationId)));
});

const flag = z.number().transform((value) => value === 1);

/** In the order of the columns above. */
const invitationForDeviceRow = z
  .tuple([
    z.number(),
    z.enum(INVITATION_STATES),
    z.number(),
    z.number().nullable(),
    deviceId,
    flag,
    deviceId.nullable(),
    z.string().nullable(),
    z.string().nullable(),
    flag,
    z.number().nullable(),
    z.number().nullable(),
    z.string().nullable(),
    z.enum(STORED_STATES).nullable(),
    z.number().nullable(),
    z.string().nullable(),
    z.number().nullable(),
    z.string().nullable(),
    z.number().nullable(),
    z.number().nullable(),
  ])
  .optional();

/** An application's invitation, with what decides whether a user device may claim it, by the primary. One round trip. */
export async function findInvitationForDevice(
  db: Database,
  digest: InvitationDigest,
  userDevice: UserDevice,
): Promise<InvitationForDevice | undefined> {
  const [row] = await db.primaryRows(selectInvitationForDevice(), { digest, ...userDevice });
  return toInvitationForDevice(row);
}

/**
 * The same, looked for near the caller. One round trip; two when the copy fails.
 *
 * @param bookmark null: the caller sent none
 * @returns `isPrimary`: whether it was the primary that was asked
 */
export async function lookForInvitationForDevice(
  db: Database,
  digest: InvitationDigest,
  userDevice: UserDevice,
  bookmark: string | null,
): Promise<{ invitation: InvitationForDevice | undefined; isPrimary: boolean }> {
  const { rows, isPrimary } = await db.nearRows(selectInvitationForDevice(), { digest, ...userDevice }, bookmark);
  return { invitation: toInvitationForDevice(rows[0]), isPrimary };
}

function toInvitationForDevice(row: unknown): InvitationForDevice | undefined {
  const parsed = invitationForDeviceRow.parse(row);
  if (!parsed) return undefined;
  const [number, state, expiresAtTime, badgeExpiresAtTime, creatorDevice, withSecret, ...more] = parsed;
  const [claimDevice, claimUserId, claimEventId, isBlocked, ...own] = more;
  const ended = { expiresAtTime, badgeExpiresAtTime };
  const claimed = { claimDevice, claimUserId, claimEventId };
  return { number, state, ...ended, creatorDevice, withSecret, ...claimed, isBlocked, badge: toOwnBadge(own) };
}

function toOwnBadge(
  own: [
    number: number | null,
    change: number | null,
    metadata: string | null,
    state: StoredState | null,
    expiresAt: number | null,
    keyThumbprint: string | null,
    rebindUntil: number | null,
    name: string | null,
    startsAt: number | null,
    issuedAt: number | null,
  ],
): InvitationForDevice["badge"] {
  const [number, change, metadata, state, expiresAt, keyThumbprint, rebindUntil, name, startsAt, issuedAt] = own;
  if (number === null || change === null || state === null) return null;
  return {
    ...{ number, change, metadata, state, expiresAt, keyThumbprint, rebindUntil, name, startsAt },
    issuedAt: issuedAt ?? 0,
  };
}

/** The invitation that reserves a number, or reserved it until it was claimed itself. One round trip. */
export function findInvitationOfNumber(
  db: Database,
  applicationId: ApplicationId,
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
