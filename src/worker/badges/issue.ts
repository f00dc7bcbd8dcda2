import { currentSigningKey } from "../../shared/current-signing-key.ts";
import { newEventId } from "../../shared/identifiers.ts";
import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { withFreedNumbers } from "../invitations/expire.ts";
import { Unavailable } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import { findBadge, type UserDevice } from "../storage/badges.ts";
import { claimInvitation } from "./claim.ts";
import { answerExisting, type BadgeRequest, type IssuedBadge } from "./existing.ts";

/** Gives a user device its badge number: the one it has, the one its invitation reserved, or a new one. */
export async function issueBadge(
  context: Context,
  application: Application,
  request: BadgeRequest,
  invitationToken: string | null,
): Promise<IssuedBadge> {
  if (invitationToken !== null) return claimInvitation(context, application, request, invitationToken);
  const userDevice = { applicationId: application.id, device: request.device, userId: request.userId };
  const existing = await findBadge(context.db, userDevice);
  if (existing) return answerExisting(context, existing, request.metadata);
  return issueNew(context, application, userDevice, request.metadata);
}

async function issueNew(
  context: Context,
  application: Application,
  userDevice: UserDevice,
  metadata: string | null,
): Promise<IssuedBadge> {
  const issuedAt = context.now();
  const { id: signingKeyId, publicKey } = currentSigningKey(application.signingKeys, issuedAt);
  const eventId = newEventId(issuedAt);
  const { device, userId } = userDevice;
  const request = { device, userId, metadata, signingKeyId, eventId, issuedAt };
  const result = await withFreedNumbers(context, application, (rules) =>
    context.allocator.issue(application.id, rules, request),
  );
  switch (result.kind) {
    case "written":
      return { kind: "created", number: result.number, publicKey };
    case "existing":
      return answerRaced(context, userDevice, metadata);
    case "exhausted":
      throw new Refusal("NUMBERS_EXHAUSTED");
    case "blocked":
      throw new Refusal("BLOCKED_USER");
    case "mismatched":
      throw new Error("a badge is issued without an Idempotency-Key");
    case "contended":
      throw new Refusal("UNAVAILABLE", { detail: "contended" });
    case "unavailable":
      throw new Unavailable("allocator", undefined);
  }
}

/** Another request for the same user device was first: what it wrote is answered like any existing badge. */
async function answerRaced(context: Context, userDevice: UserDevice, metadata: string | null): Promise<IssuedBadge> {
  const badge = await findBadge(context.db, userDevice);
  if (!badge) throw new Refusal("UNAVAILABLE", { detail: "contended" });
  return answerExisting(context, badge, metadata);
}
