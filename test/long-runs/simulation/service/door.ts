import { blockUser, type UserView, unblockUser } from "../../../../src/shared/badge-life/blocks.ts";
import type { Step } from "../../../../src/shared/badge-life/states.ts";
import type { BadgeView } from "../../../../src/shared/badge-life/view.ts";
import type { ErrorCode } from "../../../../src/shared/error-table.ts";
import {
  identifyCaller,
  identifyRevoker,
  type Credentials as Presented,
  requireApplication,
  requireServer,
} from "../../../../src/worker/applications/authentication.ts";
import { deviceOf } from "../../../../src/worker/applications/devices.ts";
import { type ChangePage, decodeFeedCursor, pageChanges } from "../../../../src/worker/badges/changes.ts";
import type { IssuedBadge } from "../../../../src/worker/badges/existing.ts";
import { issueBadge } from "../../../../src/worker/badges/issue.ts";
import { type BadgePage, decodeCursor, pageBadges } from "../../../../src/worker/badges/list.ts";
import { signBadge } from "../../../../src/worker/badges/sign.ts";
import { badgeStore, changeBadge } from "../../../../src/worker/badges/transitions.ts";
import type { Context } from "../../../../src/worker/context.ts";
import { type CreatedInvitation, createInvitation } from "../../../../src/worker/invitations/create.ts";
import { type RevokedInvitation, revokeInvitation } from "../../../../src/worker/invitations/revoke.ts";
import { Unavailable } from "../../../../src/worker/platform.ts";
import { Refusal } from "../../../../src/worker/refusal.ts";

/** What a caller gets, as `src/worker/http` would put it into a status and a code. */
export type CallResult<Granted> =
  | { kind: "granted"; granted: Granted }
  | { kind: "refused"; reason: ErrorCode; fault?: unknown };

type Call<Granted> = (context: Context) => Promise<CallResult<Granted>>;

/** Who calls, and about which device: of these, `src/worker/http` reads what it needs from a request's headers. */
interface Caller {
  applicationId: string;
  udid: string;
  /** Null: without one, as a device. */
  secret: string | null;
}

/**
 * What `src/worker/http` does between a request's bytes and the domain: has the caller authenticated, names the device. Bytes
 * and shapes are tested there; without them a seed takes half the time.
 */
export function badgeCall(
  request: Omit<Caller, "secret"> & { userId: string; metadata: string | null; token: string | null },
): Call<IssuedBadge> {
  return resultOf(async (context) => {
    const { application, device } = await deviceCaller(context, request);
    const { userId, metadata, token } = request;
    return issueBadge(context, application, { device, userId, metadata, keyThumbprint: null }, token);
  });
}

export function signCall(request: Omit<Caller, "secret"> & { base64: string }): Call<string> {
  return resultOf(async (context) => {
    const { application, device } = await deviceCaller(context, request);
    const unproven = { device, clientSignature: request.base64, badgeNumber: null, key: null };
    return signBadge(context, application, unproven);
  });
}

/** Who calls server-side. */
export interface Credentials {
  applicationId: string;
  secret: string;
}

export function pageCall(
  credentials: Credentials,
  { userId, cursor, perPage }: { userId: string | null; cursor: string | null; perPage: number },
): Call<BadgePage> {
  return serverCall(credentials, (context, applicationId) => {
    const after = cursor === null ? 0 : decodeCursor(cursor);
    if (after === null) throw new Refusal("INVALID_CURSOR");
    return pageBadges(context, { applicationId, userId, after, perPage });
  });
}

export function stepCall({ number, step, ...credentials }: Credentials & { number: number; step: Step }) {
  return serverCall<BadgeView>(credentials, (context, id) => changeBadge(context, id, number, step));
}

export function blockCall({ userId, isBlock, ...credentials }: Credentials & { userId: string; isBlock: boolean }) {
  return serverCall<UserView & { revoked: string[] }>(credentials, (context, id) =>
    isBlock
      ? blockUser(badgeStore(context), { applicationId: id, userId })
      : unblockUser(context.db, { applicationId: id, userId }),
  );
}

export function changesCall(
  credentials: Credentials,
  { cursor, perPage }: { cursor: string | null; perPage: number },
): Call<ChangePage> {
  return serverCall(credentials, (context, id) => {
    const after = cursor === null ? null : decodeFeedCursor(cursor);
    if (cursor !== null && after === null) throw new Refusal("INVALID_CURSOR");
    return pageChanges(context, id, after, perPage);
  });
}

function serverCall<Granted>(
  { applicationId, secret }: Credentials,
  work: (context: Context, applicationId: string) => Promise<Granted>,
): Call<Granted> {
  return resultOf(async (context) => {
    await requireServer(context, { applicationId, secret, clientAddress: "a server" });
    return work(context, applicationId);
  });
}

/** When an invitation ends, and its badge; times are milliseconds. */
export interface InvitationTerms {
  expiresAtTime: number;
  badgeExpiresAtTime: number | null;
  idempotencyKey: string | null;
}

export function inviteCall({
  expiresAtTime,
  badgeExpiresAtTime,
  idempotencyKey,
  ...request
}: Caller & InvitationTerms): Call<CreatedInvitation> {
  return resultOf(async (context) => {
    const { application, kind } = await identifyCaller(context, presented(request));
    const device = await deviceOf(context.custody, application, request.udid);
    return createInvitation(context, application, {
      device,
      withSecret: kind === "server",
      expiresAt: new Date(expiresAtTime).toISOString(),
      badgeExpiresAt: badgeExpiresAtTime === null ? null : new Date(badgeExpiresAtTime).toISOString(),
      idempotencyKey,
    });
  });
}

export function revokeCall({ token, ...request }: Caller & { token: string }): Call<RevokedInvitation> {
  return resultOf(async (context) => {
    const caller = await identifyRevoker(context, presented(request), request.udid);
    const { application } = caller;
    const revoker =
      caller.kind === "device"
        ? ({ kind: "device", device: await deviceOf(context.custody, application, caller.udid) } as const)
        : ({ kind: "server" } as const);
    return revokeInvitation(context, application, token, revoker);
  });
}

async function deviceCaller(context: Context, { applicationId, udid }: Omit<Caller, "secret">) {
  const credentials = presented({ applicationId, udid, secret: null });
  const application = await requireApplication(context, credentials, "INVALID_APPLICATIONID");
  return { application, device: await deviceOf(context.custody, application, udid) };
}

/** Each caller of a simulation has an address of its own. */
const presented = ({ applicationId, secret, udid }: Caller): Presented => {
  return { applicationId, secret, clientAddress: udid };
};

/** As `answerException` of `src/worker/http/errors.ts`. */
function resultOf<Granted>(work: (context: Context) => Promise<Granted>): Call<Granted> {
  return async (context) => {
    try {
      return { kind: "granted", granted: await work(context) };
    } catch (error) {
      if (error instanceof Refusal) return { kind: "refused", reason: error.code };
      if (error instanceof Unavailable) return { kind: "refused", reason: "UNAVAILABLE" };
      return { kind: "refused", reason: "INTERNAL_ERROR", fault: error };
    }
  };
}
