import { currentSigningKey } from "../../shared/credentials.ts";
import { newEventId } from "../../shared/identifiers.ts";
import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { retryWithFreedNumbers } from "../invitations/expire.ts";
import { Unavailable } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import { findBadge } from "../storage/device-badges.ts";
import { claimInvitation } from "./claim.ts";
import { type BadgeRequest, type IssuedBadge, respondWithExisting, userDeviceOf } from "./existing.ts";

/**
 * Issues a user device its badge number: the one it already has, the one its invitation reserved, or a new one.
 *
 * @throws Refusal
 * @throws Unavailable
 */
export async function issueBadge(
  context: Context,
  application: Application,
  request: BadgeRequest,
  invitationToken: string | null,
): Promise<IssuedBadge> {
  if (invitationToken !== null) return claimInvitation(context, application, request, invitationToken);
  const existing = await findBadge(context.db, userDeviceOf(application, request));
  return existing
    ? respondWithExisting(context, application, request, existing)
    : issueNew(context, application, request);
}

async function issueNew(context: Context, application: Application, request: BadgeRequest): Promise<IssuedBadge> {
  const issuedAt = context.now();
  const { id: signingKeyId, publicKey } = currentSigningKey(application.signingKeys, issuedAt);
  const eventId = newEventId(issuedAt);
  const result = await retryWithFreedNumbers(context, application, (rules) =>
    context.allocator.issue(application.id, rules, { ...request, signingKeyId, eventId, issuedAt }),
  );
  switch (result.kind) {
    case "written":
      return { kind: "created", number: result.number, publicKey };
    case "existing":
      return respondAfterRace(context, application, request);
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

/** A concurrent request of the same user device issued the badge first. */
async function respondAfterRace(
  context: Context,
  application: Application,
  request: BadgeRequest,
): Promise<IssuedBadge> {
  const badge = await findBadge(context.db, userDeviceOf(application, request));
  if (!badge) throw new Refusal("UNAVAILABLE", { detail: "contended" });
  return respondWithExisting(context, application, request, badge);
}
