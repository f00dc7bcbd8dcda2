import { digestOf } from "../../shared/digest.ts";
import type { ErrorCode } from "../../shared/error-table.ts";
import { isApplicationId } from "../../shared/identifiers.ts";
import { DENIAL_CACHE_MILLISECONDS } from "../../shared/limits.ts";
import type { Context } from "../context.ts";
import { Refusal } from "../refusal.ts";
import { hasDigest } from "./credentials.ts";
import type { Application } from "./registry.ts";

/** What a call says about who makes it. */
export interface Credentials {
  /** Null when missing. */
  applicationId: string | null;
  /** Null when missing. */
  secret: string | null;
  /** The caller's IP address: refused calls are counted by it. */
  clientAddress: string;
}

type Parts = Pick<Context, "registry" | "refusedCalls" | "refusedCallLimit" | "db" | "now">;

/**
 * The application that a client-side call names by its ID alone.
 *
 * @param missing what is wrong when there is no ID: routes differ (contract sections 2, 3 and 5)
 */
export async function requireApplication(
  parts: Parts,
  credentials: Credentials,
  missing: "UNDEFINED_APPLICATIONID" | "INVALID_APPLICATIONID",
): Promise<Application> {
  const { applicationId, clientAddress } = credentials;
  if (applicationId !== null) return requireEnabled(parts, clientAddress, applicationId, "INVALID_APPLICATIONID");
  if (missing === "UNDEFINED_APPLICATIONID") throw new Refusal(missing);
  return refuse(parts, clientAddress, missing);
}

/** The application that a server-side call proves to be, by ID and secret. Says nothing of which was wrong. */
export async function requireServer(parts: Parts, credentials: Credentials): Promise<Application> {
  const { applicationId, secret, clientAddress } = credentials;
  if (applicationId === null || secret === null) return refuse(parts, clientAddress, "INVALID_CREDENTIALS");
  const application = await requireEnabled(parts, clientAddress, applicationId, "INVALID_CREDENTIALS");
  return requireSecret(parts, clientAddress, application, secret);
}

/** Who makes a call that servers and devices may make. */
export interface Caller {
  kind: "server" | "device";
  application: Application;
}

/** A server when the call carries a right secret, a device when it carries none (contract section 5). */
export async function identifyCaller(parts: Parts, credentials: Credentials): Promise<Caller> {
  const application = await requireApplication(parts, credentials, "INVALID_APPLICATIONID");
  const { secret, clientAddress } = credentials;
  if (secret !== null) {
    return { kind: "server", application: await requireSecret(parts, clientAddress, application, secret) };
  }
  if (!application.requireSecret) return { kind: "device", application };
  const { id } = application;
  const newer = await findForDenial(parts, clientAddress, id);
  if (!newer || newer.isDisabled || newer.requireSecret) return refuse(parts, clientAddress, "INVALID_CREDENTIALS", id);
  return { kind: "device", application: newer };
}

/** Who revokes an invitation: without a secret it takes the udid that created it (contract section 5). */
export async function identifyRevoker(
  parts: Parts,
  credentials: Credentials,
  udid: string | null,
): Promise<{ kind: "server"; application: Application } | { kind: "device"; application: Application; udid: string }> {
  const { kind, application } = await identifyCaller(parts, credentials);
  if (kind === "server") return { kind, application };
  if (udid === null) return refuse(parts, credentials.clientAddress, "INVALID_CREDENTIALS", application.id);
  return { kind, application, udid };
}

/** The application whose public keys are asked for. No credentials, but IDs can be guessed here too. */
export async function requirePublisher(parts: Parts, clientAddress: string, id: string): Promise<Application> {
  const application = await find(parts, clientAddress, id);
  return application ?? refuse(parts, clientAddress, "UNKNOWN_APPLICATION");
}

async function requireEnabled(
  parts: Parts,
  clientAddress: string,
  id: string,
  code: "INVALID_APPLICATIONID" | "INVALID_CREDENTIALS",
): Promise<Application> {
  const remembered = parts.registry.recall(id, parts.now());
  if (remembered !== undefined && remembered !== "unknown" && !remembered.isDisabled) return remembered;
  const application = await find(parts, clientAddress, id);
  const newer = application?.isDisabled ? await findForDenial(parts, clientAddress, id) : application;
  return newer && !newer.isDisabled ? newer : refuse(parts, clientAddress, code);
}

/** @returns the application as it was when the secret was found right: the newest state when the cache denied it */
async function requireSecret(
  parts: Parts,
  clientAddress: string,
  application: Application,
  secret: string,
): Promise<Application> {
  const digest = await digestOf(secret);
  if (hasDigest(application, digest)) return application;
  const { registry, now } = parts;
  const { id } = application;
  if (registry.isWrongSecret(id, digest, now())) return refuse(parts, clientAddress, "INVALID_CREDENTIALS", id);
  // The secret may be newer than what this isolate remembers.
  const fresh = await lookUp(parts, clientAddress, id, digest);
  if (fresh && !fresh.isDisabled && hasDigest(fresh, digest)) return fresh;
  registry.rememberWrongSecret(id, digest, now());
  return refuse(parts, clientAddress, "INVALID_CREDENTIALS", id);
}

/** Disabled applications are returned as such. */
async function find(parts: Parts, clientAddress: string, id: string): Promise<Application | undefined> {
  if (!isApplicationId(id)) return undefined;
  const { registry, db, now } = parts;
  const remembered = registry.recall(id, now());
  if (remembered === "unknown") return undefined;
  if (remembered !== undefined) return remembered;
  // An application that this isolate has served is not guessed: an address over the limit still gets it reloaded.
  return registry.isServing(id) ? registry.findFresh(db, id, now()) : lookUp(parts, clientAddress, id);
}

/**
 * The application as it was at most a second ago: before an administrator's newest change is denied (an application
 * enabled, a secret not required any more), D1 is asked, but not by every call.
 */
async function findForDenial(parts: Parts, clientAddress: string, id: string): Promise<Application | undefined> {
  const remembered = parts.registry.recall(id, parts.now(), DENIAL_CACHE_MILLISECONDS);
  if (remembered === "unknown") return undefined;
  return remembered ?? lookUp(parts, clientAddress, id);
}

/** Asks D1, unless the address has been refused too often. */
function lookUp(
  { registry, refusedCalls, db, now }: Parts,
  clientAddress: string,
  id: string,
  digest = "",
): Promise<Application | undefined> {
  return refusedCalls.lookUp(clientAddress, now(), `${id} ${digest}`, () => registry.findFresh(db, id, now()));
}

/** @throws Refusal always: with this code, or for too many refusals of the address */
async function refuse(
  { refusedCalls, refusedCallLimit, now }: Parts,
  clientAddress: string,
  code: ErrorCode,
  applicationId?: string,
): Promise<never> {
  const isOver = await refusedCalls.count(clientAddress, now(), refusedCallLimit);
  throw new Refusal(isOver ? "RATE_LIMITED" : code, { applicationId });
}
