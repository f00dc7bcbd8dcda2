import type { Context as HonoContext } from "hono";
import type { Actor } from "../../shared/actor.ts";
import type { DeviceId } from "../../shared/identifiers.ts";
import { actorName } from "../../shared/requests.ts";
import type { Permission } from "../../shared/roles.ts";
import { ApiError } from "../api-error.ts";
import type { Application } from "../applications/application-cache.ts";
import * as callers from "../applications/credentials.ts";
import { hashUdid, type Inviter } from "../applications/derived-ids.ts";
import type { HttpEnv } from "./environment.ts";
import { type CheckedProof, verifyProofOfCall } from "./proof.ts";
import { limitAddress, limitDevice, limitInvitation, rememberAddress } from "./rate-limits.ts";

/** The lookbehind starts a match only at the beginning of a run of whitespace, so the time does not grow with its square. */
const TRAILING_WHITESPACE = /(?<![\t ])[\t ]+$/;

/**
 * A header's value; empty or blank counts as missing (contract section 2). Whitespace at the end is no part of the
 * value (RFC 9110 section 5.5), but the local runtime leaves it in.
 */
export function header(c: HonoContext<HttpEnv>, name: string): string | null {
  const value = c.req.raw.headers.get(name);
  return value === null || value.trim() === "" ? null : value.replace(TRAILING_WHITESPACE, "");
}

/** The caller's IP address. Cloudflare always sets the header; other platforms may not. */
export function clientAddress(c: HonoContext<HttpEnv>): string {
  return c.req.raw.headers.get("cf-connecting-ip") ?? "unknown";
}

function readCredentials(c: HonoContext<HttpEnv>): callers.Credentials {
  return {
    applicationId: header(c, "applicationid"),
    secret: header(c, "applicationsecret"),
    clientAddress: clientAddress(c),
  };
}

/** The device that calls, and the application it names. */
interface CallingDevice {
  application: Application;
  /** The device's ID in storage. */
  device: DeviceId;
  /** As sent; its form is checked after the body (contract section 2). */
  udid: string;
}

/** A calling device, and its proof if it sent one. */
export interface ProvingDevice extends CallingDevice {
  /** Null if the call has no proof. */
  proof: CheckedProof | null;
  /** Whether the call has the application's secret. */
  isServer: boolean;
}

/**
 * Identifies the caller of a badge call, checks its proof, and counts the call for its device. `requireKey` reports an
 * invalid proof later, after faults of the body (contract section 15).
 *
 * @param missing the code for a missing application ID: routes differ (contract sections 2 and 3)
 */
export async function requireProvingDevice(
  c: HonoContext<HttpEnv>,
  missing: "UNDEFINED_APPLICATIONID" | "INVALID_APPLICATIONID",
): Promise<ProvingDevice> {
  const credentials = readCredentials(c);
  const application = await callers.requireApplication(c.get("context"), credentials, missing);
  c.set("application", application.id);
  const isServer = await hasServerSecret(c, application);
  if (!isServer) rememberAddress(c, application, credentials.clientAddress);
  const caller = await identifyDevice(c, application);
  const text = header(c, "dpop");
  const proof = text === null ? null : await verifyProofOfCall(c, text, caller);
  if (!isServer) await limitDevice(c, caller, proof);
  return { ...caller, proof, isServer };
}

/**
 * Identifies the application of a user's call, which has no device. The call counts for its address only if it is
 * refused; `limitUser` counts it for its user.
 */
export async function requireUserCall(c: HonoContext<HttpEnv>): Promise<Application> {
  const credentials = readCredentials(c);
  const application = await callers.requireApplication(c.get("context"), credentials, "INVALID_APPLICATIONID");
  c.set("application", application.id);
  c.set("actor", { kind: "user" });
  rememberAddress(c, application, credentials.clientAddress);
  return application;
}

/**
 * Identifies the application and the invitation that a visitor's call names. Counts the call for its address and for its
 * invitation.
 */
export async function requireInvited(c: HonoContext<HttpEnv>): Promise<{ application: Application; token: string }> {
  const credentials = readCredentials(c);
  const application = await callers.requireApplication(c.get("context"), credentials, "INVALID_APPLICATIONID");
  c.set("application", application.id);
  rememberAddress(c, application, credentials.clientAddress);
  const token = header(c, "invitationtoken");
  if (token === null) throw new ApiError("INVALID_INVITATIONTOKEN");
  await limitAddress(c);
  await limitInvitation(c, application, token);
  return { application, token };
}

/**
 * Identifies an application's server, or a person who has signed in, by the secret.
 *
 * @param permission that the call needs; by default that of its method
 */
export async function requireServer(
  c: HonoContext<HttpEnv>,
  permission: Permission = permissionFor(c.req.method),
): Promise<Application> {
  const caller = await callers.requireServer(c.get("context"), readCredentials(c), permission);
  admitServer(c, caller);
  return caller.application;
}

/** Identifies a door, an application's server or a person by the secret. */
export async function requireListener(c: HonoContext<HttpEnv>): Promise<callers.StatusListener> {
  const listener = await callers.requireListener(c.get("context"), readCredentials(c));
  c.set("application", listener.application.id);
  return listener;
}

const permissionFor = (method: string): Permission => (method === "GET" || method === "HEAD" ? "read" : "change");

function admitServer(c: HonoContext<HttpEnv>, { application, consoleUser }: callers.ServerCaller): void {
  c.set("application", application.id);
  c.set("caller", application);
  if (consoleUser !== null) c.set("consoleUser", consoleUser);
  c.set("actor", consoleUser === null ? namedServer(header(c, "actor")) : { kind: "person", name: consoleUser.name });
}

/**
 * The application's server, which may name the person it calls for.
 *
 * @param name percent-encoded UTF-8; null without a name
 * @throws ApiError INVALID_ACTOR
 */
function namedServer(name: string | null): Actor {
  if (name === null) return { kind: "server" };
  const parsed = actorName.safeParse(decodePercent(name));
  if (!parsed.success) throw new ApiError("INVALID_ACTOR");
  return { kind: "server", name: parsed.data };
}

/** @returns null if the text is not ASCII that encodes UTF-8 */
export function decodePercent(text: string): string | null {
  if (!/^[\x20-\x7e]*$/.test(text)) return null;
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** A call that creates invitations. */
export type InvitingCall = CallingDevice & { inviter: Inviter };

/** Identifies the caller who creates many invitations: the application's server, or a person who has signed in. */
export async function requireServerInviter(c: HonoContext<HttpEnv>): Promise<InvitingCall> {
  const caller = await callers.requireServer(c.get("context"), readCredentials(c), "invite");
  admitServer(c, caller);
  return { ...(await identifyDevice(c, caller.application)), inviter: inviterOf(caller) };
}

const inviterOf = ({ consoleUser }: callers.ServerCaller): Inviter =>
  consoleUser === null ? { kind: "server" } : { kind: "person", ...consoleUser };

/** Identifies the caller who creates an invitation. A device is limited as on every device route; a server is not. */
export async function requireInviter(c: HonoContext<HttpEnv>): Promise<InvitingCall> {
  const credentials = readCredentials(c);
  const inviter = await callers.identifyInviter(c.get("context"), credentials);
  const { application } = inviter;
  c.set("application", application.id);
  if (inviter.kind === "server") admitServer(c, inviter);
  else rememberAddress(c, application, credentials.clientAddress);
  const caller = await identifyDevice(c, application);
  if (inviter.kind === "server") return { ...caller, inviter: inviterOf(inviter) };
  await limitDevice(c, caller);
  return { ...caller, inviter: { kind: "device", device: caller.device } };
}

interface RevokingCall {
  application: Application;
  by: { kind: "server" } | { kind: "device"; device: DeviceId };
}

/**
 * Identifies the caller who revokes an invitation. A device is limited as on every device route. The form of a udid is
 * not checked, because a malformed udid has created no invitation.
 */
export async function requireRevoker(c: HonoContext<HttpEnv>): Promise<RevokingCall> {
  const context = c.get("context");
  const credentials = readCredentials(c);
  const caller = await callers.identifyRevoker(context, credentials, header(c, "udid"));
  const { kind, application } = caller;
  c.set("application", application.id);
  if (kind === "server") {
    admitServer(c, caller);
    return { application, by: { kind } };
  }
  const device = await hashUdid(context.unsealedKeys, application, caller.udid);
  rememberAddress(c, application, credentials.clientAddress);
  await limitDevice(c, { application, device });
  await limitAddress(c);
  return { application, by: { kind, device } };
}

async function identifyDevice(c: HonoContext<HttpEnv>, application: Application): Promise<CallingDevice> {
  const udid = header(c, "udid");
  if (udid === null) throw new ApiError("UNDEFINED_UDID");
  return { application, udid, device: await hashUdid(c.get("context").unsealedKeys, application, udid) };
}

/** Whether the call has the application's secret. */
export async function hasServerSecret(c: HonoContext<HttpEnv>, application: Application): Promise<boolean> {
  const { secret } = readCredentials(c);
  return secret !== null && (await callers.isServerSecret(application, secret));
}
