import type { Context as HonoContext } from "hono";
import { type DeviceId, digestOf } from "../../shared/identifiers.ts";
import * as authentication from "../applications/authentication.ts";
import { clientBlock } from "../applications/client-address.ts";
import { deviceOf } from "../applications/devices.ts";
import type { Application } from "../applications/registry.ts";
import { retryPlatform } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import type { HttpEnv } from "./environment.ts";
import { type CheckedProof, checkProofOfCall } from "./proof.ts";

/** A header's value; empty or blank counts as missing (contract section 2). */
export function header(c: HonoContext<HttpEnv>, name: string): string | null {
  const value = c.req.raw.headers.get(name);
  return value === null || value.trim() === "" ? null : value;
}

/** The caller's IP address. Cloudflare always sets the header; other platforms may not. */
export function clientAddress(c: HonoContext<HttpEnv>): string {
  return c.req.raw.headers.get("cf-connecting-ip") ?? "unknown";
}

function readCredentials(c: HonoContext<HttpEnv>): authentication.Credentials {
  return {
    applicationId: header(c, "applicationid"),
    secret: header(c, "applicationsecret"),
    clientAddress: clientAddress(c),
  };
}

/** The device that calls, and the application it names. */
export interface CallingDevice {
  application: Application;
  /** The device's ID in storage. */
  device: DeviceId;
  /** As it was sent; its form is checked after the body (contract section 2). */
  udid: string;
}

/**
 * Identifies the caller of a device route, and applies the rate limits.
 *
 * @param missing the code for a missing application ID: routes differ (contract sections 2 and 3)
 */
export async function requireDevice(
  c: HonoContext<HttpEnv>,
  missing: "UNDEFINED_APPLICATIONID" | "INVALID_APPLICATIONID",
): Promise<CallingDevice> {
  const credentials = readCredentials(c);
  const application = await authentication.requireApplication(c.get("context"), credentials, missing);
  c.set("application", application.id);
  const caller = await identifyDevice(c, application);
  await limitDevice(c, caller, credentials);
  return caller;
}

/** A device that calls with a proof, or without one. */
export interface ProvingDevice extends CallingDevice {
  /** Null: the call has no proof. */
  proof: CheckedProof | null;
}

/**
 * Identifies the caller of a badge call, checks its proof, and applies the rate limits. What is wrong with a proof is reported
 * later, by `requireKey`: after the body's faults (contract section 15).
 */
export async function requireProvingDevice(
  c: HonoContext<HttpEnv>,
  missing: "UNDEFINED_APPLICATIONID" | "INVALID_APPLICATIONID",
): Promise<ProvingDevice> {
  const text = header(c, "dpop");
  if (text === null) return { ...(await requireDevice(c, missing)), proof: null };
  const credentials = readCredentials(c);
  const application = await authentication.requireApplication(c.get("context"), credentials, missing);
  c.set("application", application.id);
  const caller = await identifyDevice(c, application);
  const { deviceLimit, clientIpLimit } = c.get("context");
  const isLimited = !(await isServer(application, credentials));
  // Before the proof, whose check takes more time than the rest of the call.
  if (isLimited) await applyLimits([clientIpLimit, clientIpKey(application, credentials)]);
  const proof = await checkProofOfCall(c, text, caller);
  if (isLimited) await applyLimits([deviceLimit, deviceKey(caller, proof)]);
  return { ...caller, proof };
}

/** A person who calls without naming a device. */
export interface CallingPerson {
  application: Application;
}

/** Identifies the application that a person's call names. Calls are limited by address before a token is checked. */
export async function requirePerson(c: HonoContext<HttpEnv>): Promise<CallingPerson> {
  const credentials = readCredentials(c);
  const application = await authentication.requireApplication(c.get("context"), credentials, "INVALID_APPLICATIONID");
  c.set("application", application.id);
  await applyLimits([c.get("context").clientIpLimit, clientIpKey(application, credentials)]);
  return { application };
}

/** A person has as many calls as a device (contract section 22). No device ID has a space. */
export async function limitPerson(c: HonoContext<HttpEnv>, { id }: Application, userId: string): Promise<void> {
  await applyLimits([c.get("context").deviceLimit, `${id}:user ${await digestOf(userId)}`]);
}

/** Identifies an application's server by its secret. */
export async function requireServer(c: HonoContext<HttpEnv>): Promise<Application> {
  const application = await authentication.requireServer(c.get("context"), readCredentials(c));
  c.set("application", application.id);
  return application;
}

/** Who creates an invitation. A device is limited like on every device route, a server is not. */
export async function requireInviter(c: HonoContext<HttpEnv>): Promise<CallingDevice & { withSecret: boolean }> {
  const credentials = readCredentials(c);
  const { kind, application } = await authentication.identifyCaller(c.get("context"), credentials);
  c.set("application", application.id);
  const caller = await identifyDevice(c, application);
  if (kind === "device") await limitDevice(c, caller, credentials);
  return { ...caller, withSecret: kind === "server" };
}

export interface Revoker {
  application: Application;
  by: { kind: "server" } | { kind: "device"; device: DeviceId };
}

/** Identifies who revokes an invitation. The form of a udid is not checked: one that created no invitation finds none. */
export async function requireRevoker(c: HonoContext<HttpEnv>): Promise<Revoker> {
  const context = c.get("context");
  const caller = await authentication.identifyRevoker(context, readCredentials(c), header(c, "udid"));
  const { kind, application } = caller;
  c.set("application", application.id);
  if (kind === "server") return { application, by: { kind } };
  return { application, by: { kind, device: await deviceOf(context.custody, application, caller.udid) } };
}

async function identifyDevice(c: HonoContext<HttpEnv>, application: Application): Promise<CallingDevice> {
  const udid = header(c, "udid");
  if (udid === null) throw new Refusal("UNDEFINED_UDID");
  return { application, udid, device: await deviceOf(c.get("context").custody, application, udid) };
}

/**
 * Limits device calls with the platform's rate-limit binding, which counts per location (contract section 7) and stores
 * no keys. A call with a valid secret is a server's, and not limited.
 */
async function limitDevice(
  c: HonoContext<HttpEnv>,
  caller: CallingDevice,
  credentials: authentication.Credentials,
): Promise<void> {
  const { application } = caller;
  if (await isServer(application, credentials)) return;
  const { deviceLimit, clientIpLimit } = c.get("context");
  await applyLimits([deviceLimit, deviceKey(caller, null)], [clientIpLimit, clientIpKey(application, credentials)]);
}

async function isServer(application: Application, { secret }: authentication.Credentials): Promise<boolean> {
  return secret !== null && (await authentication.hasSecret(application, secret));
}

/**
 * Calls with a valid proof are counted by its key, so a stranger with the udid cannot lock its owner out (contract section
 * 15). Proofs that are only not fresh are counted apart from them: a stranger may have recorded one.
 */
function deviceKey({ application, device }: CallingDevice, proof: CheckedProof | null): string {
  const key = `${application.id}:${device}`;
  if (proof === null || proof.thumbprint === null) return key;
  return proof.ok ? `${key}:${proof.thumbprint}` : `${key}:${proof.thumbprint}:stale`;
}

const clientIpKey = ({ id }: Application, { clientAddress }: authentication.Credentials): string =>
  `${id}:${clientBlock(clientAddress)}`;

/** @throws Refusal RATE_LIMITED */
async function applyLimits(...limits: [limit: RateLimit, key: string][]): Promise<void> {
  const outcomes = await retryPlatform("rate limit", () =>
    Promise.all(limits.map(([limit, key]) => limit.limit({ key }))),
  );
  if (outcomes.some(({ success }) => !success)) throw new Refusal("RATE_LIMITED");
}
