import { stateAt } from "../../shared/badge-lifecycle/states.ts";
import type { DeviceId, InvitationDigest } from "../../shared/identifiers.ts";
import { mayBind, mayUse } from "../allocator/decide/key-binding.ts";
import type { Application } from "../applications/application-cache.ts";
import type { Context } from "../context.ts";
import { findBadge, findBadgeAtNearest, type StoredBadge } from "../storage/device-badges.ts";

export interface LoginRequest {
  /** Keyed digest of the udid. */
  device: DeviceId;
  userId: string;
  /** JSON text with the known fields in one order; null if none was sent. */
  metadata: string | null;
  /** Thumbprint of the key that the device has proved; null without a proof. */
  keyThumbprint: string | null;
  /** Whether the user's token was verified, or none is required. */
  isVerified: boolean;
  /** The bookmark that the device sent; null if it sent none. */
  bookmark: string | null;
}

/**
 * Finds the user device's badge, the settings that apply, and whether the login is accepted without a write. It may be
 * accepted from a recent replica.
 */
export async function findLogin(
  context: Context,
  application: Application,
  request: LoginRequest,
  invitation: InvitationDigest | null,
): Promise<{ badge: StoredBadge | undefined; isFromReplica: boolean; settings: Application; isUnchanged: boolean }> {
  const { db, now: clock } = context;
  const { device, userId, bookmark } = request;
  const userDevice = { applicationId: application.id, device, userId };
  const seen = await findBadgeAtNearest(db, userDevice, bookmark, clock());
  // A replica may lack a rebind, with which this login binds the badge.
  const mayLackRebind = request.keyThumbprint !== null && seen.badge?.keyThumbprint === null;
  const isDecisive = seen.source === "primary" || (seen.source === "fresh-replica" && !mayLackRebind);
  const badge = seen.badge && !isDecisive ? await findBadge(db, userDevice) : seen.badge;
  const isFromReplica = seen.source !== "primary";
  if (badge === undefined) return { badge, isFromReplica, settings: application, isUnchanged: false };
  const settings = await settingsForBinding(context, application, badge, request.keyThumbprint);
  const isUnchanged =
    request.isVerified &&
    (invitation === null || badge.invitation === invitation) &&
    // The time is taken after the reads, because the badge may have ended while D1 was slow.
    isLoginWithoutWrite(settings, request, badge, clock());
  return { badge, isFromReplica, settings, isUnchanged };
}

/**
 * The settings that decide whether an unbound badge gets bound. If the cached settings would leave the badge unbound
 * despite a proof, it uses settings that are at most a second old, because an administrator may just have set
 * `--bind-until`. Nothing is refused here, so no other code would retry with recent settings.
 */
async function settingsForBinding(
  { applicationCache, db, now }: Context,
  application: Application,
  badge: StoredBadge,
  thumbprint: string | null,
): Promise<Application> {
  const isUnbound = thumbprint !== null && badge.keyThumbprint === null;
  if (!isUnbound || mayBind(badge, thumbprint, application, now())) return application;
  return (await applicationCache.findRecent(db, application.id, now())) ?? application;
}

/** Whether a login with the badge is accepted and writes nothing. @param now milliseconds */
function isLoginWithoutWrite(
  application: Application,
  request: LoginRequest,
  badge: StoredBadge,
  now: number,
): boolean {
  const { keyThumbprint, metadata } = request;
  return (
    badge.currentNumber === badge.number &&
    (metadata === null || metadata === badge.metadata) &&
    mayUse(badge, keyThumbprint, application) &&
    !mayBind(badge, keyThumbprint, application, now) &&
    stateAt(badge, now) === "active"
  );
}
