import type { ErrorCode } from "../../../../src/shared/error-table.ts";
import {
  identifyCaller,
  identifyRevoker,
  type Credentials as Presented,
  requireApplication,
  requireServer,
} from "../../../../src/worker/applications/authentication.ts";
import { deviceOf } from "../../../../src/worker/applications/devices.ts";
import type { IssuedBadge } from "../../../../src/worker/badges/existing.ts";
import { issueBadge } from "../../../../src/worker/badges/issue.ts";
import { type BadgePage, decodeCursor, pageBadges } from "../../../../src/worker/badges/list.ts";
import { signBadge } from "../../../../src/worker/badges/sign.ts";
import type { Context } from "../../../../src/worker/context.ts";
import { type CreatedInvitation, createInvitation } from "../../../../src/worker/invitations/create.ts";
import { type RevokedInvitation, revokeInvitation } from "../../../../src/worker/invitations/revoke.ts";
import { Unavailable } from "../../../../src/worker/platform.ts";
import { Refusal } from "../../../../src/worker/refusal.ts";

/** What a caller gets, as `src/worker/http` would put it into a status and a code. */
export type Answer<Granted> =
  | { kind: "granted"; granted: Granted }
  | { kind: "refused"; reason: ErrorCode; fault?: unknown };

type Call<Granted> = (context: Context) => Promise<Answer<Granted>>;

/**
 * What `src/worker/http` does between a request's bytes and the domain: has the caller authenticated, names the device. Bytes
 * and shapes are tested there; without them a seed takes half the time.
 */
export function badgeCall(request: {
  applicationId: string;
  udid: string;
  userId: string;
  metadata: string | null;
  token: string | null;
}): Call<IssuedBadge> {
  return answering(async (context) => {
    const presented = credentialsOf(request.applicationId, null, request.udid);
    const application = await requireApplication(context, presented, "INVALID_APPLICATIONID");
    const device = await deviceOf(context.custody, application, request.udid);
    const { userId, metadata, token } = request;
    return issueBadge(context, application, { device, userId, metadata }, token);
  });
}

export function signCall(request: { applicationId: string; udid: string; base64: string }): Call<string> {
  return answering(async (context) => {
    const presented = credentialsOf(request.applicationId, null, request.udid);
    const application = await requireApplication(context, presented, "INVALID_APPLICATIONID");
    const device = await deviceOf(context.custody, application, request.udid);
    return signBadge(context, application, device, request.base64);
  });
}

/** Who calls server-side. */
export interface Credentials {
  applicationId: string;
  secret: string;
}

export function pageCall(
  { applicationId, secret }: Credentials,
  page: { userId: string | null; cursor: string | null; perPage: number },
): Call<BadgePage> {
  return answering(async (context) => {
    await requireServer(context, credentialsOf(applicationId, secret, "a server"));
    const after = page.cursor === null ? 0 : decodeCursor(page.cursor);
    if (after === null) throw new Refusal("INVALID_CURSOR");
    return pageBadges(context, { applicationId, userId: page.userId, after, perPage: page.perPage });
  });
}

/** @param secret null: without one, as a device */
export function inviteCall(request: {
  applicationId: string;
  secret: string | null;
  udid: string;
  expiresAtTime: number;
}): Call<CreatedInvitation> {
  return answering(async (context) => {
    const { applicationId, secret, udid, expiresAtTime } = request;
    const { application } = await identifyCaller(context, credentialsOf(applicationId, secret, udid));
    const device = await deviceOf(context.custody, application, udid);
    const expiresAt = new Date(expiresAtTime).toISOString();
    return createInvitation(context, application, { device, expiresAt, expiresAtTime });
  });
}

/** @param secret null: without one, as the device that created it */
export function revokeCall(request: {
  applicationId: string;
  secret: string | null;
  udid: string;
  token: string;
}): Call<RevokedInvitation> {
  return answering(async (context) => {
    const { applicationId, secret, udid, token } = request;
    const caller = await identifyRevoker(context, credentialsOf(applicationId, secret, udid), udid);
    const { application } = caller;
    const revoker =
      caller.kind === "device"
        ? ({ kind: "device", device: await deviceOf(context.custody, application, caller.udid) } as const)
        : ({ kind: "server" } as const);
    return revokeInvitation(context, application, token, revoker);
  });
}

/** As `handleException` of `src/worker/http/app.ts`. */
function answering<Granted>(work: (context: Context) => Promise<Granted>): Call<Granted> {
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

/** @param clientAddress who calls: each caller of a simulation has an address of its own */
function credentialsOf(applicationId: string, secret: string | null, clientAddress: string): Presented {
  return { applicationId, secret, clientAddress };
}
