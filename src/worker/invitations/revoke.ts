import { parseBadgeNumber } from "../../shared/badge-life/view.ts";
import { type DeviceId, type InvitationDigest, invitationDigestOf } from "../../shared/identifiers.ts";
import { MAX_CLAIM_ATTEMPTS } from "../../shared/limits.ts";
import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { Refusal } from "../refusal.ts";
import { type EndedInvitation, writeReleases } from "../storage/invitation-ends.ts";
import { findInvitation, findInvitationOfNumber } from "../storage/invitations.ts";
import { expirePending, revokePending } from "./end.ts";
import { decideRevoke } from "./lifecycle.ts";

export interface RevokedInvitation {
  number: number;
  expiresAt: string;
  /** Milliseconds; the same in every response. */
  revokedAt: number;
}

export type Revoker = { kind: "server" } | { kind: "device"; device: DeviceId };

/**
 * Ends a pending invitation and releases its number (contract section 5).
 *
 * @param id the token; the application's server may also use the number while it is reserved (contract section 12)
 * @throws Refusal
 * @throws Unavailable
 */
export async function revokeInvitation(
  context: Context,
  application: Application,
  id: string,
  revoker: Revoker,
): Promise<RevokedInvitation> {
  const digest = await digestOfId(context, application, id, revoker);
  for (let attempt = 0; attempt < MAX_CLAIM_ATTEMPTS; attempt++) {
    const invitation = await findInvitation(context.db, application.id, digest);
    const decision = decideRevoke(invitation, revoker, context.now());
    if (decision.kind === "refuse" || !invitation) {
      throw new Refusal(decision.kind === "refuse" ? decision.code : "UNKNOWN_INVITATION");
    }
    if (decision.kind === "already-revoked") {
      const revokedAt = invitation.endedAt;
      if (revokedAt === null) throw new Error("a revoked invitation must have an end time");
      if (invitation.releasedAt === null) {
        await release(context, {
          applicationId: application.id,
          digest,
          number: invitation.number,
          endedAt: revokedAt,
        });
      }
      return { number: invitation.number, expiresAt: invitation.expiresAt, revokedAt };
    }
    // This request or a concurrent one ends the invitation; the next attempt reads which.
    const end = decision.kind === "revoke" ? revokePending : expirePending;
    await end(context, digest);
  }
  throw new Refusal("UNAVAILABLE", { detail: "contended" });
}

async function digestOfId(
  context: Context,
  application: Application,
  id: string,
  revoker: Revoker,
): Promise<InvitationDigest> {
  const number = revoker.kind === "server" ? parseBadgeNumber(id) : null;
  if (number === null) return invitationDigestOf(id);
  const invitation = await findInvitationOfNumber(context.db, application.id, number);
  if (invitation?.state === "claimed") throw new Refusal("CLAIMED_INVITATION");
  // The number identifies the invitation only while it is reserved.
  if (invitation?.state !== "pending" || invitation.expiresAtTime <= context.now()) {
    throw new Refusal("UNKNOWN_INVITATION");
  }
  return invitation.digest;
}

/** Releases the number before the response; if that fails, the sweep does it. */
async function release(context: Context, ended: EndedInvitation): Promise<void> {
  try {
    await context.allocator.release(ended.applicationId, [ended]);
    context.defer(writeReleases(context.db, [ended.digest], context.now()).catch((error) => leftToSweep(error)));
  } catch (error) {
    leftToSweep(error);
  }
}

function leftToSweep(error: unknown): void {
  log("warn", { event: "release-left-to-sweep", error });
}
