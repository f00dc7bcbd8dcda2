import { blockUser, unblockUser } from "../../../../src/shared/badge-life/blocks.ts";
import type { Step } from "../../../../src/shared/badge-life/states.ts";
import type { ErrorCode } from "../../../../src/shared/error-table.ts";
import type { ApplicationId } from "../../../../src/shared/identifiers.ts";
import {
  identifyCaller,
  identifyRevoker,
  requireApplication,
  requireServer,
} from "../../../../src/worker/applications/authentication.ts";
import { deviceOf } from "../../../../src/worker/applications/devices.ts";
import { requiresProof } from "../../../../src/worker/badges/binding.ts";
import { decodeFeedCursor, pageChanges } from "../../../../src/worker/badges/changes.ts";
import { issueBadge } from "../../../../src/worker/badges/issue.ts";
import { decodeCursor, pageBadges } from "../../../../src/worker/badges/list.ts";
import { signBadge } from "../../../../src/worker/badges/sign.ts";
import { badgeStore, changeBadge, rebindBadge } from "../../../../src/worker/badges/transitions.ts";
import type { Context } from "../../../../src/worker/context.ts";
import { createInvitation } from "../../../../src/worker/invitations/create.ts";
import { revokeInvitation } from "../../../../src/worker/invitations/revoke.ts";
import { Unavailable } from "../../../../src/worker/platform.ts";
import { Refusal } from "../../../../src/worker/refusal.ts";

/** Of these, `src/worker/http` reads what it needs from a request's headers. */
interface Device {
  applicationId: ApplicationId;
  udid: string;
}

/** A device's call; `key` names the key that its proof would be by; `bookmark` is the header; null: it has none. */
type DeviceCall = Device & { key: string | null; bookmark: string | null };

/** Another home's bookmark counts as none. */
function bookmarkOfHome({ home }: Context, header: string | null): string | null {
  const [, of, bookmark] = /^(\d+)\.([0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32})$/.exec(header ?? "") ?? [];
  return Number(of) === home ? (bookmark ?? null) : null;
}

/** A public key that has the name of its key in it: whoever holds that one passes the challenge of a door. */
const jwkOf = (key: string) => ({ kty: "EC", crv: "P-256", x: key, y: "y" }) as const;

export interface UserDevice extends Device {
  userId: string;
}

/** Who calls server-side. */
export interface Credentials {
  applicationId: ApplicationId;
  secret: string;
}

/** With null instead of a secret, as a device. */
type Caller = Device & { secret: string | null };

/** When an invitation ends, and its badge; times are milliseconds. */
export interface InvitationTerms {
  expiresAtTime: number;
  badgeExpiresAtTime: number | null;
  idempotencyKey: string | null;
}

/**
 * What `src/worker/http` does between a request's bytes and the domain: has the caller authenticated, names the device. Bytes
 * and shapes are tested there; without them a seed takes half the time.
 */
const CALLS = {
  async badge(context: Context, request: UserDevice & DeviceCall & { token: string | null; metadata: string | null }) {
    const { application, device } = await deviceCaller(context, request);
    const { userId, metadata, token, key: keyThumbprint } = request;
    const bookmark = bookmarkOfHome(context, request.bookmark);
    return issueBadge(context, application, { device, userId, metadata, keyThumbprint, bookmark }, token);
  },

  async sign(context: Context, request: DeviceCall & { base64: string; badgeNumber: number | null }) {
    const { application, device } = await deviceCaller(context, request);
    const { base64: clientSignature, badgeNumber, key } = request;
    const proven = key === null ? null : { thumbprint: key, jwk: jwkOf(key) };
    const bookmark = bookmarkOfHome(context, request.bookmark);
    return signBadge(context, application, { device, clientSignature, badgeNumber, key: proven, bookmark });
  },

  async invite(context: Context, request: Caller & InvitationTerms) {
    const { application, kind } = await identifyCaller(context, presented(request));
    const { badgeExpiresAtTime, expiresAtTime, idempotencyKey } = request;
    return createInvitation(context, application, {
      device: await deviceOf(context.custody, application, request.udid),
      withSecret: kind === "server",
      expiresAt: new Date(expiresAtTime).toISOString(),
      badgeExpiresAt: badgeExpiresAtTime === null ? null : new Date(badgeExpiresAtTime).toISOString(),
      idempotencyKey,
    });
  },

  async revoke(context: Context, request: Caller & { token: string }) {
    const { application, ...caller } = await identifyRevoker(context, presented(request), request.udid);
    if (caller.kind === "server") return revokeInvitation(context, application, request.token, { kind: "server" });
    const device = await deviceOf(context.custody, application, caller.udid);
    return revokeInvitation(context, application, request.token, { kind: "device", device });
  },

  async page(
    context: Context,
    request: Credentials & { userId: string | null; cursor: string | null; perPage: number },
  ) {
    const { applicationId, userId, cursor, perPage } = await serverCaller(context, request);
    const after = cursor === null ? 0 : decodeCursor(cursor);
    if (after === null) throw new Refusal("INVALID_CURSOR");
    return pageBadges(context, { applicationId, userId, after, perPage });
  },

  async changes(context: Context, request: Credentials & { cursor: string | null; perPage: number }) {
    const { applicationId, cursor, perPage } = await serverCaller(context, request);
    const after = cursor === null ? null : decodeFeedCursor(cursor);
    if (cursor !== null && after === null) throw new Refusal("INVALID_CURSOR");
    return pageChanges(context, applicationId, after, perPage);
  },

  async step(context: Context, request: Credentials & { number: number; step: Step }) {
    const { applicationId, number, step } = await serverCaller(context, request);
    return changeBadge(context, applicationId, number, step);
  },

  async rebind(context: Context, request: Credentials & { number: number }) {
    const { applicationId, number } = await serverCaller(context, request);
    return rebindBadge(context, applicationId, number);
  },

  async block(context: Context, request: Credentials & { userId: string }) {
    const { applicationId, userId } = await serverCaller(context, request);
    return blockUser(badgeStore(context), { applicationId, userId });
  },

  async unblock(context: Context, request: Credentials & { userId: string }) {
    const { applicationId, userId } = await serverCaller(context, request);
    return unblockUser(context.db, { applicationId, userId });
  },
};

export type CallName = keyof typeof CALLS;
type Requests = { [Name in CallName]: Parameters<(typeof CALLS)[Name]>[1] };
type Grants = { [Name in CallName]: Awaited<ReturnType<(typeof CALLS)[Name]>> };
export type RequestOf<Name extends CallName> = Requests[Name];
export type GrantedBy<Name extends CallName> = Grants[Name];

const calls: {
  [Name in CallName]: (context: Context, request: Requests[Name]) => Promise<Grants[Name]>;
} = CALLS;

/** What a caller gets, as `src/worker/http` would put it into a status and a code. */
export type CallResult<Granted> =
  | { kind: "granted"; granted: Granted; bookmark: string | null }
  | { kind: "refused"; reason: ErrorCode; fault?: unknown };

/** Carries a call out, in an isolate; the result is as of `answerException` of `src/worker/http/errors.ts`. */
export async function carryOut<Name extends CallName>(
  context: Context,
  name: Name,
  request: RequestOf<Name>,
): Promise<CallResult<GrantedBy<Name>>> {
  try {
    const granted = await calls[name](context, request);
    return { kind: "granted", granted, bookmark: context.db.bookmark && `${context.home}.${context.db.bookmark}` };
  } catch (error) {
    if (error instanceof Refusal) return { kind: "refused", reason: error.code };
    if (error instanceof Unavailable) return { kind: "refused", reason: "UNAVAILABLE" };
    return { kind: "refused", reason: "INTERNAL_ERROR", fault: error };
  }
}

async function deviceCaller(context: Context, { applicationId, udid, key }: DeviceCall) {
  const credentials = presented({ applicationId, udid, secret: null });
  const application = await requireApplication(context, credentials, "INVALID_APPLICATIONID");
  if (key === null && (await requiresProof(context, application))) throw new Refusal("INVALID_PROOF");
  return { application, device: await deviceOf(context.custody, application, udid) };
}

async function serverCaller<Request extends Credentials>(context: Context, request: Request): Promise<Request> {
  await requireServer(context, presented({ ...request, udid: "a server" }));
  return request;
}

/** Each caller of a simulation has an address of its own. */
const presented = ({ applicationId, secret, udid }: Caller) => ({ applicationId, secret, clientAddress: udid });
