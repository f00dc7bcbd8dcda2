import type { AuditContext } from "../../../../src/shared/actor.ts";
import type { ErrorCode } from "../../../../src/shared/error-table.ts";
import type { ApplicationId, DeviceId } from "../../../../src/shared/identifiers.ts";
import type { Transition } from "../../../../src/worker/allocator/decide/next-state.ts";
import { ApiError } from "../../../../src/worker/api-error.ts";
import type { Application } from "../../../../src/worker/applications/application-cache.ts";
import * as authentication from "../../../../src/worker/applications/credentials.ts";
import { hashUdid } from "../../../../src/worker/applications/derived-ids.ts";
import { withRecentSettings } from "../../../../src/worker/applications/recent-settings.ts";
import { FEED_CURSOR, pageChanges } from "../../../../src/worker/badges/changes.ts";
import { issueBadge } from "../../../../src/worker/badges/issue.ts";
import { BADGE_CURSOR, pageBadges } from "../../../../src/worker/badges/list.ts";
import { signBadge } from "../../../../src/worker/badges/sign.ts";
import { changeBadge } from "../../../../src/worker/badges/transitions.ts";
import type { Context } from "../../../../src/worker/context.ts";
import { parseBookmark } from "../../../../src/worker/http/bookmark.ts";
import { createInvitations } from "../../../../src/worker/invitations/create.ts";
import { revokeInvitation } from "../../../../src/worker/invitations/revoke.ts";
import { Unavailable } from "../../../../src/worker/platform.ts";
import { changeBlock, eraseUser } from "../../../../src/worker/users/block-and-erase.ts";

interface Device {
  applicationId: ApplicationId;
  udid: string;
}

export type UserDevice = Device & { userId: string };

/** A device's call; `key` names the key that its proof would be by; `bookmark` is the header; null: it has none. */
type DeviceCall = Device & { key: string | null; bookmark: string | null };

/** `user`: whom the user token names; null: there is none. */
type BadgeCallOfDevice = UserDevice &
  DeviceCall & { token: string | null; metadata: string | null; user: string | null };

/** As `checkUserOfLogin` finds it: tokens themselves are tested elsewhere. */
const isVerified = ({ users }: Application, { user, userId }: BadgeCallOfDevice): boolean =>
  users === null || user === userId;

const BY_DEVICE: AuditContext = { actor: { kind: "device" } };
const BY_SERVER: AuditContext = { actor: { kind: "server" } };

export interface Credentials {
  applicationId: ApplicationId;
  secret: string;
}

type BadgeCall = Credentials & { number: number };
type UserCall = Credentials & { userId: string };
type PageCall = Credentials & { cursor: string | null; perPage: number };

/** With null instead of a secret, as a device. */
type EitherCall = Device & { secret: string | null };

/** Times are milliseconds; `userId`: whoever claims must name it. */
type InvitationCall = EitherCall & {
  userId: string | null;
  expiresAtTime: number;
  badgeExpiresAtTime: number | null;
  idempotencyKey: string | null;
};

/** Each caller of a simulation has an address of its own. */
const presented = ({ applicationId, secret, udid }: EitherCall) => ({ applicationId, secret, clientAddress: udid });

async function serveDevice<Granted>(
  context: Context,
  { applicationId, udid, key, bookmark: sentBookmark }: DeviceCall,
  serve: (application: Application, caller: { device: DeviceId; bookmark: string | null }) => Promise<Granted>,
): Promise<Granted> {
  const credentials = presented({ applicationId, udid, secret: null });
  const known = await authentication.requireApplication(context, credentials, "INVALID_APPLICATIONID");
  const device = await hashUdid(context.unsealedKeys, known, udid);
  const bookmark = sentBookmark && parseBookmark(sentBookmark, context.home);
  return withRecentSettings(context, known, async (application) => {
    if (key === null && application.requireProof) throw new ApiError("INVALID_PROOF");
    return serve(application, { device, bookmark });
  });
}

function ofServer<Request extends Credentials, Granted>(
  call: (context: Context, request: Request, application: Application) => Promise<Granted>,
) {
  return async (context: Context, request: Request): Promise<Granted> => {
    const { application } = await authentication.requireServer(
      context,
      presented({ ...request, udid: "a server" }),
      "change",
    );
    return call(context, request, application);
  };
}

type StepCall = BadgeCall & { step: Transition; reason?: string | null };

const takeStep = ofServer(async (context, { applicationId, number, step, reason = null }: StepCall) => {
  const change = { number, transition: step, ifChange: null, ownedBy: null };
  return (await changeBadge(context, applicationId, change, { ...BY_SERVER, reason })).view;
});

/**
 * What `src/worker/http` does between a request's bytes and the domain: has the caller authenticated, names the device. Bytes
 * and shapes are tested there; without them a seed takes half the time.
 */
const CALLS = {
  async badge(context: Context, request: BadgeCallOfDevice) {
    const { userId, metadata, token: invitationToken, key: keyThumbprint } = request;
    return serveDevice(context, request, async (application, caller) => {
      const user = { isVerified: isVerified(application, request) };
      if (!user.isVerified && invitationToken === null) throw new ApiError("INVALID_USERTOKEN");
      const wanted = { ...caller, ...user, isServer: false, userId, metadata, keyThumbprint, invitationToken };
      return issueBadge(context, application, wanted, BY_DEVICE);
    });
  },

  async sign(context: Context, request: DeviceCall & { base64: string; badgeNumber: number | null }) {
    const { base64: clientSignature, badgeNumber, key: thumbprint } = request;
    // A public key that has the name of its key in it: whoever holds that one passes the challenge of a door.
    const key = thumbprint && { thumbprint, jwk: { kty: "EC", crv: "P-256", x: thumbprint, y: "y" } as const };
    return serveDevice(context, request, (application, caller) =>
      signBadge(context, application, { ...caller, clientSignature, badgeNumber, key: key || null }),
    );
  },

  async invite(context: Context, request: InvitationCall) {
    const { application, kind } = await authentication.identifyInviter(context, presented(request));
    const { udid, userId, badgeExpiresAtTime, expiresAtTime, idempotencyKey } = request;
    const device = await hashUdid(context.unsealedKeys, application, udid);
    const wanted = {
      expiresAt: new Date(expiresAtTime).toISOString(),
      badgeExpiresAt: badgeExpiresAtTime === null ? null : new Date(badgeExpiresAtTime).toISOString(),
      ...{ badgeStartsAt: null, name: null, userId },
    };
    const inviter = kind === "server" ? { kind } : { kind, device };
    const audit = kind === "server" ? BY_SERVER : BY_DEVICE;
    const [created] = await createInvitations(
      context,
      application,
      [wanted],
      { device, inviter, idempotencyKey },
      audit,
    );
    if (!created) throw new Error("one was asked for");
    if ("code" in created) throw new ApiError(created.code);
    return created;
  },

  async revoke(context: Context, request: EitherCall & { token: string }) {
    const { udid, token } = request;
    const { application, kind } = await authentication.identifyRevoker(context, presented(request), udid);
    const by = kind === "server" ? { kind } : { kind, device: await hashUdid(context.unsealedKeys, application, udid) };
    return revokeInvitation(context, application, token, by, kind === "server" ? BY_SERVER : BY_DEVICE);
  },

  page: ofServer(
    async (
      context,
      { applicationId, userId, cursor, perPage }: PageCall & { userId: string | null },
    ): Promise<BadgePage> => {
      const { badges, next } = await pageBadges(context, {
        ...{ applicationId, userId, state: null, text: null, endsBefore: null, isNewestFirst: false, perPage },
        after: cursor === null ? null : BADGE_CURSOR.decode(cursor),
      });
      return { badges, nextCursor: next === null ? null : BADGE_CURSOR.encode(next) };
    },
  ),
  changes: ofServer((context, { applicationId, cursor, perPage }: PageCall) =>
    pageChanges(context, applicationId, cursor === null ? null : FEED_CURSOR.decode(cursor), perPage),
  ),
  step: takeStep,
  rebind: (context: Context, request: BadgeCall) => takeStep(context, { ...request, step: { kind: "rebind" } }),
  block: ofServer((context, { userId }: UserCall, application) =>
    changeBlock(context, application, userId, "block", BY_SERVER),
  ),
  unblock: ofServer((context, { userId }: UserCall, application) =>
    changeBlock(context, application, userId, "unblock", BY_SERVER),
  ),
  erase: ofServer((context, { userId }: UserCall, application) => eraseUser(context, application, userId, BY_SERVER)),
};

export interface BadgePage {
  badges: { id: string }[];
  nextCursor: string | null;
}

export type CallName = keyof typeof CALLS;
export type RequestOf<Name extends CallName> = Parameters<(typeof CALLS)[Name]>[1];
export type GrantedBy<Name extends CallName> = Awaited<ReturnType<(typeof CALLS)[Name]>>;

const calls: {
  [Name in CallName]: (context: Context, request: RequestOf<Name>) => Promise<GrantedBy<Name>>;
} = CALLS;

/** What a caller gets, as `src/worker/http` would put it into a status and a code. */
export type CallResult<Granted> =
  | { kind: "granted"; granted: Granted; bookmark: string | null }
  | { kind: "refused"; reason: ErrorCode; fault?: unknown };

/** Carries a call out, in an isolate; the result is as of `handleException` of `src/worker/http/app.ts`. */
export async function carryOut<Name extends CallName>(
  context: Context,
  name: Name,
  request: RequestOf<Name>,
): Promise<CallResult<GrantedBy<Name>>> {
  try {
    const granted = await calls[name](context, request);
    return { kind: "granted", granted, bookmark: context.db.bookmark && `${context.home}.${context.db.bookmark}` };
  } catch (error) {
    if (error instanceof ApiError) return { kind: "refused", reason: error.code };
    if (error instanceof Unavailable) return { kind: "refused", reason: "UNAVAILABLE" };
    return { kind: "refused", reason: "INTERNAL_ERROR", fault: error };
  }
}
