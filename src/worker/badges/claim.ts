import { stateAt } from "../../shared/badge-life/states.ts";
import { badgeEvent } from "../../shared/badge-life/view.ts";
import { currentSigningKey } from "../../shared/credentials.ts";
import type { ErrorCode } from "../../shared/error-table.ts";
import { type ApplicationId, type InvitationDigest, invitationDigestOf, newEventId } from "../../shared/identifiers.ts";
import { MAX_CLAIM_ATTEMPTS } from "../../shared/limits.ts";
import type { Application, SigningKey } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { expirePending } from "../invitations/end.ts";
import { decideClaim } from "../invitations/lifecycle.ts";
import { Unavailable } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import type { Claim } from "../storage/claim-writes.ts";
import { findBadge } from "../storage/device-badges.ts";
import {
  findInvitation,
  findInvitationForDevice,
  type InvitationForDevice,
  lookForInvitationForDevice,
} from "../storage/invitations.ts";
import { refusalOfUser } from "../users/user-check.ts";
import { badgeCreatedPayload } from "../webhooks/event.ts";
import { mayBind, mayUseNow } from "./binding.ts";
import { type BadgeRequest, type IssuedBadge, respondWithExisting, userDeviceOf } from "./existing.ts";

/**
 * Issues an invitation's number to a user device. The write is conditional on all that was read; if that was not up to date,
 * because a concurrent request changed it or a copy of D1 lags, this one reads and decides again. So the first read may go to
 * a copy, but what it refuses or finds expired is decided at the primary (contract section 16).
 *
 * @throws Refusal
 * @throws Unavailable
 */
export async function claimInvitation(
  context: Context,
  application: Application,
  request: BadgeRequest,
  token: string,
): Promise<IssuedBadge> {
  const { db } = context;
  const userDevice = userDeviceOf(application, request);
  const digest = await invitationDigestOf(token);
  // All attempts use the same event ID and signing key: a write whose response was lost is recognized by the event ID, and
  // the response names the key that the badge was issued with.
  const startedAt = context.now();
  const eventId = newEventId(startedAt);
  const signingKey = currentSigningKey(application.signingKeys, startedAt);
  let { invitation, isPrimary } = await lookForInvitationForDevice(db, digest, userDevice, request.bookmark);
  for (let attempt = 0; attempt < MAX_CLAIM_ATTEMPTS; attempt++) {
    if (attempt > 0) {
      invitation = await findInvitationForDevice(db, digest, userDevice);
      isPrimary = true;
    }
    const refusal = refusalOfUser(request.user, invitation);
    if (refusal !== null && isPrimary) throw refusal;
    if (refusal !== null) continue;
    const isOurs = invitation?.claimEventId === eventId;
    const now = context.now();
    const own = invitation?.badge;
    const claimer = {
      device: request.device,
      userId: request.userId,
      isBlocked: invitation?.isBlocked ?? false,
      badgeState: own ? stateAt(own, now) : null,
      hasKey: !own || (await mayReplace(context, application, own, request.keyThumbprint)),
    };
    const decision = decideClaim(invitation, claimer, now);
    if (!isPrimary && (decision.kind === "refuse" || decision.kind === "expire")) continue;
    if (decision.kind === "refuse" || !invitation) {
      throw new Refusal(decision.kind === "refuse" ? decision.code : "UNKNOWN_INVITATION");
    }
    if (decision.kind === "expire") {
      await expirePending(context, digest);
      continue;
    }
    if (isOurs) return created(invitation.number, signingKey);
    if (decision.kind === "already-claimed") return respondToRepeatedClaim(context, application, request);
    const claim = toClaim(context, request, { token, digest, eventId, signingKey, invitation });
    if (await writeClaim(context, application.id, claim)) return created(invitation.number, signingKey);
  }
  throw new Refusal("UNAVAILABLE", { detail: "contended" });
}

/** @returns false if the rows have changed since the request read them */
async function writeClaim(context: Context, applicationId: ApplicationId, claim: Claim): Promise<boolean> {
  const result = await context.allocator.claim(applicationId, claim);
  switch (result.kind) {
    case "written":
      context.db.noteBookmark(result.bookmark);
      return true;
    case "overtaken":
      return false;
    case "released":
      return refuseUnlessEnded(context, applicationId, claim, "REVOKED_INVITATION");
    case "claimed-by-another":
      return refuseUnlessEnded(context, applicationId, claim, "CLAIMED_INVITATION");
    case "unavailable":
      throw new Unavailable("allocator", undefined);
  }
}

/**
 * An invitation ends in D1 before it ends in the object, so reading D1 again gives the reason for the refusal. If D1 still
 * has it pending, D1 was restored to an older state, and the number has or may get another owner.
 */
async function refuseUnlessEnded(
  context: Context,
  applicationId: ApplicationId,
  claim: Claim,
  code: ErrorCode,
): Promise<false> {
  const invitation = await findInvitation(context.db, applicationId, claim.digest);
  if (invitation?.state !== "pending") return false;
  throw new Refusal(code);
}

/** A key that could log in with a badge may replace it by a claim. */
async function mayReplace(
  context: Context,
  application: Application,
  own: NonNullable<InvitationForDevice["badge"]>,
  thumbprint: string | null,
): Promise<boolean> {
  const couldBind = mayBind(own, thumbprint, application, context.now());
  return couldBind || mayUseNow(context, application, own, thumbprint);
}

function toClaim(
  context: Context,
  request: BadgeRequest,
  found: {
    token: string;
    digest: InvitationDigest;
    eventId: string;
    signingKey: SigningKey;
    invitation: InvitationForDevice;
  },
): Claim {
  const { token, digest, eventId, signingKey, invitation } = found;
  const { device, userId, metadata, keyThumbprint } = request;
  const { number, badge: own, badgeExpiresAtTime } = invitation;
  const claimedAt = context.now();
  // A revoked badge stays revoked when another one supersedes it, so no event reports it as replaced.
  const replaced = own && own.state !== "revoked" ? own : null;
  return {
    digest,
    eventId,
    payload: badgeCreatedPayload({
      eventId,
      createdAt: claimedAt,
      number,
      userId,
      metadata,
      keyThumbprint,
      invitationId: token,
      replacedNumber: replaced?.number ?? null,
    }),
    claimedAt,
    number,
    device,
    userId,
    metadata,
    signingKeyId: signingKey.id,
    keyThumbprint,
    expiresAt: badgeExpiresAtTime,
    superseded: own && { number: own.number, readChange: own.change },
    replacedEvent: replaced && badgeEvent("badge:replaced", claimedAt, { ...replaced, userId, state: "replaced" }),
  };
}

function created(number: number, { publicKey }: SigningKey): IssuedBadge {
  return { kind: "created", number, publicKey };
}

/**
 * The response to the first claim was lost, or the phone presents its token with every request. If another invitation has
 * replaced the badge since, the response is the user device's present badge: a retired number opens no door.
 */
async function respondToRepeatedClaim(
  context: Context,
  application: Application,
  request: BadgeRequest,
): Promise<IssuedBadge> {
  const badge = await findBadge(context.db, userDeviceOf(application, request));
  if (!badge) throw new Refusal("CLAIMED_INVITATION");
  return respondWithExisting(context, application, request, badge);
}
