import type { AuditContext } from "../../shared/actor.ts";
import { stateAt } from "../../shared/badge-lifecycle/states.ts";
import { expectKind } from "../../shared/expect-kind.ts";
import { type DeviceId, type InvitationDigest, invitationDigestOf } from "../../shared/identifiers.ts";
import type { Success } from "../allocator/allocator-client.ts";
import type { BadgeCommand } from "../allocator/commands.ts";
import { mayBind, mayUse } from "../allocator/decide/key-binding.ts";
import type { Application } from "../applications/application-cache.ts";
import { hashUserId } from "../applications/derived-ids.ts";
import type { Context } from "../context.ts";
import { Unavailable } from "../platform.ts";
import { findBadge, findBadgeAtNearest, type StoredBadge } from "../storage/device-badges.ts";
import { hasPendingInvitation } from "../storage/invitations.ts";
import { executeWithSettings } from "./execute-with-settings.ts";

/** `POST /v1/badge`. */
export interface BadgeRequest {
  /** Keyed digest of the udid. */
  device: DeviceId;
  userId: string;
  /** JSON text with the known fields in one order; null if none was sent. */
  metadata: string | null;
  /** Thumbprint of the key that the device has proved; null without a proof. */
  keyThumbprint: string | null;
  /** Whether the user's token was verified, or none is required. */
  isVerified: boolean;
  /** Whether the call has the application's secret: the limit of new badges per hour is for calls without it. */
  isServer: boolean;
  invitationToken: string | null;
  /** The bookmark that the device sent; null if it sent none. */
  bookmark: string | null;
}

/** `created` in the response that issues the badge, `existing` in every later one. */
type IssueResult = {
  number: number;
  /** Thumbprint of the key that it is bound to; null if unbound. */
  keyThumbprint: string | null;
} & ({ kind: "created"; publicKey: string } | { kind: "existing" });

/**
 * Counts a call for its caller's address before the allocator is called (contract section 7). The methods reject with
 * RATE_LIMITED.
 */
interface AddressLimits {
  /** A call that would take a fresh number. */
  countFreshNumber(): Promise<void>;
  /** A claim with a token that is not pending in D1: made up, spent or ended. */
  countGuess(): Promise<void>;
}

/** For a call without an address to count for, such as a server's. */
const NO_ADDRESS: AddressLimits = { countFreshNumber: async () => {}, countGuess: async () => {} };

/**
 * Issues a user device its badge number: the one it already has, the one its invitation reserved, or a new one.
 *
 * A recent replica near the caller, or the primary, serves a login that changes nothing. The allocator decides
 * everything else.
 *
 * @throws ApiError
 * @throws Unavailable
 */
export async function issueBadge(
  context: Context,
  application: Application,
  request: BadgeRequest,
  audit: AuditContext,
  limits: AddressLimits = NO_ADDRESS,
): Promise<IssueResult> {
  const { invitationToken: token, ...rest } = request;
  const digest = token === null ? null : await invitationDigestOf(token);
  // A call without a proof has been counted for its address already (`requireKey`).
  const mayBeGuess = digest !== null && request.keyThumbprint !== null;
  const [{ badge: known, isFromReplica, settings, isUnchanged }, isPending] = await Promise.all([
    findLogin(context, application, request, digest),
    mayBeGuess && hasPendingInvitation(context.db, application.id, digest),
  ]);
  const rethrowUnlessAtPrimary = async (refusal: unknown) => {
    // The phone's badge may be newer than the replica. If so, no fresh number is drawn, and its own token is not a guess.
    const { device, userId } = request;
    const userDevice = { applicationId: application.id, device, userId };
    const badge = isFromReplica ? await findBadge(context.db, userDevice) : undefined;
    if (badge === undefined || (digest !== null && badge.invitation !== digest)) throw refusal;
  };
  if (mayBeGuess && !isPending && known?.invitation !== digest) {
    await limits.countGuess().catch(rethrowUnlessAtPrimary);
  }
  if (digest === null && known === undefined) await limits.countFreshNumber().catch(rethrowUnlessAtPrimary);
  if (known && isUnchanged) return { kind: "existing", number: known.number, keyThumbprint: known.keyThumbprint };
  const { device, userId, metadata, keyThumbprint, isVerified, isServer } = rest;
  const invitation = digest === null || token === null ? null : { digest, token };
  const userDigest = await hashUserId(context.unsealedKeys, settings, userId);
  const wanted = {
    kind: "badge" as const,
    device,
    userId,
    userDigest,
    metadata,
    keyThumbprint,
    isVerified,
    invitation,
  };
  const { result, rules } = await executeWithSettings(
    context,
    settings,
    (rules): BadgeCommand => ({ ...wanted, rules: isServer ? { ...rules, newBadgesPerHour: null } : rules }),
    audit,
  );
  return toIssueResult(result, rules.signingKey.publicKey);
}

function toIssueResult(result: Success, publicKey: string): IssueResult {
  const { kind, number, keyThumbprint } = expectKind(result, "created", "existing");
  return kind === "created" ? { kind, number, keyThumbprint, publicKey } : { kind, number, keyThumbprint };
}

/**
 * Finds the user device's badge, the settings that apply, and whether the login is accepted without a write. It may be
 * accepted from a recent replica.
 */
async function findLogin(
  context: Context,
  application: Application,
  request: BadgeRequest,
  invitation: InvitationDigest | null,
): Promise<{ badge: StoredBadge | undefined; isFromReplica: boolean; settings: Application; isUnchanged: boolean }> {
  const { db, now: clock } = context;
  const { device, userId, bookmark } = request;
  const userDevice = { applicationId: application.id, device, userId };
  const now = clock();
  const seen = await findBadgeAtNearest(db, userDevice, bookmark, now);
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
    isMereLogin(settings, request, badge, now);
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
  try {
    return (await applicationCache.findRecent(db, application.id, now())) ?? application;
  } catch (error) {
    // If the primary fails, the cached settings apply.
    if (error instanceof Unavailable) return application;
    throw error;
  }
}

/** Whether a login with the badge is accepted and writes nothing. @param now milliseconds */
function isMereLogin(application: Application, request: BadgeRequest, badge: StoredBadge, now: number): boolean {
  const { keyThumbprint, metadata } = request;
  return (
    badge.currentNumber === badge.number &&
    (metadata === null || metadata === badge.metadata) &&
    mayUse(badge, keyThumbprint, application) &&
    !mayBind(badge, keyThumbprint, application, now) &&
    stateAt(badge, now) === "active"
  );
}
