import { currentSigningKey } from "../../shared/credentials.ts";
import { newEventId } from "../../shared/identifiers.ts";
import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { retryWithFreedNumbers } from "../invitations/expire.ts";
import { Unavailable } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import { type Authority, findBadge, lookForBadge } from "../storage/device-badges.ts";
import { claimInvitation } from "./claim.ts";
import { type BadgeRequest, type IssuedBadge, isMereLogin, respondWithExisting, userDeviceOf } from "./existing.ts";

/**
 * Issues a user device its badge number: the one it already has, the one its invitation reserved, or a new one.
 *
 * What a copy of D1 near the caller finds may be enough for a login; all else is decided at the primary (contract section 16),
 * even that there is no badge yet, which the INSERT of a new one decides.
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
  const userDevice = userDeviceOf(application, request);
  const now = context.now();
  const { badge: seen, authority } = await lookForBadge(context.db, userDevice, request.bookmark, now);
  if (!seen) return issueNew(context, application, request, authority);
  if (authority === "recent-copy" && isMereLogin(application, request, seen, now)) {
    return { kind: "existing", number: seen.number };
  }
  const badge = authority === "primary" ? seen : await findBadge(context.db, userDevice);
  return badge
    ? respondWithExisting(context, application, request, badge)
    : issueNew(context, application, request, "primary");
}

/** @param authority of the look that found no badge */
async function issueNew(
  context: Context,
  application: Application,
  request: BadgeRequest,
  authority: Authority,
): Promise<IssuedBadge> {
  const issuedAt = context.now();
  const { id: signingKeyId, publicKey } = currentSigningKey(application.signingKeys, issuedAt);
  const eventId = newEventId(issuedAt);
  const { bookmark: _, user: _verified, ...newBadge } = request;
  const result = await retryWithFreedNumbers(context, application, (rules) =>
    context.allocator.issue(application.id, rules, { ...newBadge, signingKeyId, eventId, issuedAt }),
  );
  switch (result.kind) {
    case "written":
      context.db.noteBookmark(result.bookmark);
      return { kind: "created", number: result.number, publicKey };
    case "existing":
      return respondWithFound(context, application, request, { otherwise: contended });
    case "exhausted":
      if (authority === "primary") throw exhausted();
      return respondWithFound(context, application, request, { otherwise: exhausted });
    case "blocked":
      throw new Refusal("BLOCKED_USER");
    case "mismatched":
      throw new Error("a badge is issued without an Idempotency-Key");
    case "contended":
      throw contended();
    case "unavailable":
      throw new Unavailable("allocator", undefined);
  }
}

const contended = () => new Refusal("UNAVAILABLE", { detail: "contended" });
const exhausted = () => new Refusal("NUMBERS_EXHAUSTED");

/**
 * The badge that the primary has: a concurrent request issued it, or the copy that was looked at did not have it yet.
 *
 * @throws Refusal `otherwise`, if there is none
 */
async function respondWithFound(
  context: Context,
  application: Application,
  request: BadgeRequest,
  { otherwise }: { otherwise: () => Refusal },
): Promise<IssuedBadge> {
  const badge = await findBadge(context.db, userDeviceOf(application, request));
  if (!badge) throw otherwise();
  return respondWithExisting(context, application, request, badge);
}
