import type { AuditContext } from "../../shared/actor.ts";
import { expectKind } from "../../shared/expect-kind.ts";
import { invitationDigestOf } from "../../shared/identifiers.ts";
import type { Success } from "../allocator/allocator-client.ts";
import type { BadgeCommand } from "../allocator/commands.ts";
import type { Application } from "../applications/application-cache.ts";
import { hashUserId } from "../applications/derived-ids.ts";
import type { Context } from "../context.ts";
import { findBadge } from "../storage/device-badges.ts";
import { isUsableToken } from "../storage/invitations.ts";
import { executeWithSettings } from "./execute-with-settings.ts";
import { findLogin, type LoginRequest } from "./login-from-replica.ts";

/** `POST /v1/badge`. */
export interface BadgeRequest extends LoginRequest {
  /** Whether the call has the application's secret: the limit of new badges per hour is for calls without it. */
  isServer: boolean;
  invitationToken: string | null;
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
  /** A call with a token that is neither pending in D1 nor claimed by this user device: made up, spent or ended. */
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
  const userDevice = { applicationId: application.id, device: request.device, userId: request.userId };
  // A call without a proof has been counted for its address already (`requireKey`).
  const isProved = request.keyThumbprint !== null;
  const [{ badge: known, isFromReplica, settings, isUnchanged }, isGuess] = await Promise.all([
    findLogin(context, application, request, digest),
    digest !== null && isProved && isUsableToken(context.db, { ...userDevice, digest }).then((isUsable) => !isUsable),
  ]);
  // The invitation of an old badge may be deleted.
  if (isGuess && known?.invitation !== digest) await limits.countGuess();
  if (digest === null && known === undefined) {
    await limits.countFreshNumber().catch(async (refusal: unknown) => {
      // The phone's badge may be newer than the replica. If so, no fresh number is drawn.
      if (!isFromReplica || !(await findBadge(context.db, userDevice))) throw refusal;
    });
  }
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
