import type { AuditContext } from "../../shared/actor.ts";
import type { ErrorCode } from "../../shared/error-table.ts";
import { expectKind } from "../../shared/expect-kind.ts";
import {
  type DeviceId,
  type InvitationDigest,
  invitationDigestOf,
  newInvitationToken,
} from "../../shared/identifiers.ts";
import type { NewInvitation } from "../allocator/commands.ts";
import { ApiError } from "../api-error.ts";
import type { Application } from "../applications/application-cache.ts";
import { deriveInvitationToken, type Inviter } from "../applications/derived-ids.ts";
import { withRecentSettings } from "../applications/recent-settings.ts";
import { executeWithSettings } from "../badges/execute-with-settings.ts";
import type { Context } from "../context.ts";

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
      if ("code" in request) return request;
      const token = await tokenOf(context, application, caller, index);
      return { token, invitation: invitationOf(request, caller, await invitationDigestOf(token), context.now()) };
    }),
  );
  const invitations = named.flatMap((each) => ("code" in each ? [] : each.invitation));
  const reserved = await reserve(context, application, invitations, audit);
  return named.map((each) => {
    if ("code" in each) return each;
    const result = reserved.shift();
    if (!result) throw new Error("the allocator decided fewer invitations");
    return "code" in result ? result : { id: each.token, number: result.number };
  });
}

/** It ends with its badge if the badge's end is earlier. The allocator compares the times with the clock. */
function invitationOf(
  request: InvitationRequest,
  { device, inviter }: InvitingCaller,
  digest: InvitationDigest,
  createdAt: number,
): NewInvitation {
  const end = Date.parse(request.expiresAt);
  const badgeExpiresAtTime = timeOf(request.badgeExpiresAt);
  return {
    ...request,
    digest,
    creatorDevice: device,
    createdAt,
    expiresAtTime: Math.min(end, badgeExpiresAtTime ?? end),
    badgeExpiresAtTime,
    badgeStartsAtTime: timeOf(request.badgeStartsAt),
    withSecret: inviter.kind !== "device",
    byReception: isByReception(inviter),
  };
}

/** In milliseconds. */
const timeOf = (text: string | null): number | null => (text === null ? null : Date.parse(text));

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
