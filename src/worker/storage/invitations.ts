import { and, eq, getTableColumns, isNotNull, isNull, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { ApplicationId, InvitationDigest } from "../../shared/identifiers.ts";
import { badge, blockedUser, invitation, type StoredState } from "../../shared/schema.ts";
import { changeOf } from "../../shared/storage/high-water.ts";
import { type Database, prepared } from "./database.ts";
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

export interface InvitationForDevice extends StoredInvitation {
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
  } | null;
}

export const selectInvitationForDevice = prepared((orm) => {
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
  return orm
    .select({
      ...getTableColumns(invitation),
      isBlocked,
      // D1 mixes up result columns of the same name.
      ownNumber: sql<number | null>`${own.number}`.as("own_number"),
      ownChange: sql<number | null>`${sql.raw(changeOf("own"))}`.as("own_change"),
      ownMetadata: sql<string | null>`${own.metadata}`.as("own_metadata"),
      ownState: sql<StoredState | null>`${own.state}`.as("own_state"),
      ownExpiresAt: sql<number | null>`${own.expiresAt}`.as("own_expires_at"),
      ownKeyThumbprint: sql<string | null>`${own.keyThumbprint}`.as("own_key_thumbprint"),
      ownRebindUntil: sql<number | null>`${own.rebindUntil}`.as("own_rebind_until"),
    })
    .from(invitation)
    .leftJoin(own, ownBadge)
    .where(and(eq(invitation.digest, sql.placeholder("digest")), eq(invitation.applicationId, applicationId)))
    .prepare();
});

/** An application's invitation, with what decides whether a user device may claim it. One round trip. */
export async function findInvitationForDevice(
  db: Database,
  digest: InvitationDigest,
  userDevice: UserDevice,
): Promise<InvitationForDevice | undefined> {
  const found = await db.run((orm) => selectInvitationForDevice(orm).get({ digest, ...userDevice }));
  if (!found) return undefined;
  const {
    isBlocked,
    ownNumber,
    ownChange,
    ownMetadata,
    ownState,
    ownExpiresAt,
    ownKeyThumbprint,
    ownRebindUntil,
    ...invited
  } = found;
  const own =
    ownNumber === null || ownChange === null || ownState === null
      ? null
      : {
          number: ownNumber,
          change: ownChange,
          metadata: ownMetadata,
          state: ownState,
          expiresAt: ownExpiresAt,
          keyThumbprint: ownKeyThumbprint,
          rebindUntil: ownRebindUntil,
        };
  return { ...invited, isBlocked: isBlocked === 1, badge: own };
}

/** The invitation that reserves a number, or did before the number was claimed. One round trip. */
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
