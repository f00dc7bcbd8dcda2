import type { AuditContext } from "../../shared/actor.ts";
import type { ErrorCode } from "../../shared/error-table.ts";
import { expectKind } from "../../shared/expect-kind.ts";
import { type DeviceId, invitationDigestOf, newInvitationToken } from "../../shared/identifiers.ts";
import { MAX_BADGE_DAYS, MAX_INVITATION_DAYS } from "../../shared/limits/request-limits.ts";
import { DAY_MILLISECONDS } from "../../shared/time.ts";
import type { NewInvitation } from "../allocator/commands.ts";
import { isSame } from "../allocator/decide/invitation.ts";
import { ApiError } from "../api-error.ts";
import type { Application } from "../applications/application-cache.ts";
import { deriveInvitationToken, type Inviter } from "../applications/derived-ids.ts";
import { withRecentSettings } from "../applications/recent-settings.ts";
import { executeWithSettings } from "../badges/execute-with-settings.ts";
import type { Context } from "../context.ts";
import { findInvitations } from "../storage/invitations.ts";

/** A requested invitation; times are exactly as sent, or null. */
export interface InvitationRequest {
  expiresAt: string;
  badgeExpiresAt: string | null;
  badgeStartsAt: string | null;
  name: string | null;
  userId: string | null;
}

/** The caller who requests invitations. */
interface InvitingCaller {
  /** Keyed digest of the udid. */
  device: DeviceId;
  inviter: Inviter;
  /** Null if none was sent; a repeated request then creates another invitation. */
  idempotencyKey: string | null;
}

/** `id`: the invitation token. Only its digest is stored. */
export type CreatedInvitation = { id: string; number: number } | { code: ErrorCode };

/**
 * Reserves a number for each invitation until it is claimed, revoked or expires. With an Idempotency-Key, a repeated
 * request gets the same invitations, even after they have ended (contract section 12).
 *
 * @param requests the error code in place of an invalid request
 * @returns the result of each, in the same order
 * @throws ApiError
 * @throws Unavailable
 */
export async function createInvitations(
  context: Context,
  application: Application,
  requests: readonly (InvitationRequest | { code: ErrorCode })[],
  caller: InvitingCaller,
  audit: AuditContext,
): Promise<CreatedInvitation[]> {
  const named = await Promise.all(
    requests.map(async (request, index) => {
      const token = await tokenOf(context, application, caller, index);
      return { request, token, digest: await invitationDigestOf(token) };
    }),
  );
  const digests = named.map(({ digest }) => digest);
  const isRepeatable = caller.idempotencyKey !== null;
  const known = new Map(
    (isRepeatable ? await findInvitations(context.db, application.id, digests) : []).map((row) => [row.digest, row]),
  );
  const createdAt = context.now();
  const planOf = ({
    request,
    digest,
  }: (typeof named)[number]): NewInvitation | { number: number } | { code: ErrorCode } => {
    if ("code" in request) return request;
    const wanted = { ...request, digest, creatorDevice: caller.device };
    const found = known.get(digest);
    if (found) return isSame(found, wanted) ? { number: found.number } : { code: "INVALID_IDEMPOTENCYKEY" };
    const times = checkTimes(request, createdAt);
    if ("code" in times) return times;
    return {
      ...wanted,
      ...times,
      withSecret: caller.inviter.kind !== "device",
      byReception: isByReception(caller.inviter),
      isRepeatable,
      createdAt,
    };
  };
  const planned = named.map((each) => ({ token: each.token, plan: planOf(each) }));
  const invitations = planned.map(({ plan }) => plan).filter((plan) => "digest" in plan);
  const reserved = await reserve(context, application, invitations, audit);
  return planned.map(({ token, plan }) => {
    const result = "digest" in plan ? reserved.shift() : plan;
    if (!result) throw new Error("the allocator decided fewer invitations");
    return "code" in result ? result : { id: token, number: result.number };
  });
}

const isByReception = (inviter: Inviter): boolean => inviter.kind === "person" && inviter.role === "reception";

/** Each invitation of a call has a token of its own. Index 0 uses the bare key, like a single call. */
function tokenOf(
  context: Context,
  application: Application,
  { inviter, idempotencyKey }: InvitingCaller,
  index: number,
): Promise<string> | string {
  if (idempotencyKey === null) return newInvitationToken();
  return deriveInvitationToken(
    context.unsealedKeys,
    application,
    inviter,
    index === 0 ? idempotencyKey : `${idempotencyKey}\n${index}`,
  );
}

/** The invitation ends with its badge if the badge's end is earlier. Times are milliseconds. */
function checkTimes(
  { expiresAt, badgeExpiresAt, badgeStartsAt }: InvitationRequest,
  now: number,
):
  | { expiresAtTime: number; badgeExpiresAtTime: number | null; badgeStartsAtTime: number | null }
  | { code: ErrorCode } {
  const end = timeAhead(expiresAt, MAX_INVITATION_DAYS, now);
  if (end === null) return { code: "INVALID_EXPIRESAT" };
  const badgeEnd = badgeExpiresAt === null ? null : timeAhead(badgeExpiresAt, MAX_BADGE_DAYS, now);
  if (badgeExpiresAt !== null && badgeEnd === null) return { code: "INVALID_BADGEEXPIRESAT" };
  const badgeStartsAtTime = badgeStartsAt === null ? null : Date.parse(badgeStartsAt);
  if (badgeStartsAtTime !== null && badgeStartsAtTime >= (badgeEnd ?? Number.POSITIVE_INFINITY)) {
    return { code: "INVALID_STARTSAT" };
  }
  return { expiresAtTime: Math.min(end, badgeEnd ?? end), badgeExpiresAtTime: badgeEnd, badgeStartsAtTime };
}

/** @returns milliseconds; null if the time is past or too far ahead */
function timeAhead(text: string, maxDays: number, now: number): number | null {
  const time = Date.parse(text);
  return time > now && time <= now + maxDays * DAY_MILLISECONDS ? time : null;
}

/** @returns the reserved numbers, or the error code */
async function reserve(
  context: Context,
  application: Application,
  invitations: readonly NewInvitation[],
  audit: AuditContext,
): Promise<({ number: number } | { code: ErrorCode })[]> {
  if (invitations.length === 0) return [];
  try {
    const { result } = await withRecentSettings(context, application, (settings) => {
      // Newer settings may require the secret that the cached ones did not.
      const lacksSecret = settings.requireSecret && invitations.some(({ withSecret }) => !withSecret);
      if (lacksSecret) throw new ApiError("INVALID_CREDENTIALS");
      return executeWithSettings(context, settings, (rules) => ({ kind: "invite", rules, invitations }), audit);
    });
    return expectKind(result, "invitations").results;
  } catch (error) {
    if (error instanceof ApiError) return invitations.map(() => ({ code: error.code }));
    throw error;
  }
}
