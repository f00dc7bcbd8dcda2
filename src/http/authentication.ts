import type { Context as HonoContext } from "hono";
import { hasSecret } from "../applications/credentials.ts";
import { deviceOf } from "../applications/devices.ts";
import type { Application } from "../applications/registry.ts";
import { type Reason, Refusal } from "../refusal.ts";
import type { HttpEnv } from "./environment.ts";

/** A header's value; empty or blank counts as missing (contract section 2). */
export function header(c: HonoContext<HttpEnv>, name: string): string | null {
  const value = c.req.header(name);
  return value === undefined || value.trim() === "" ? null : value;
}

/**
 * The application that a client-side call names by its ID alone.
 *
 * @param missing what is wrong when there is no ID: routes differ (contract sections 2, 3 and 5)
 */
export async function requireApplication(c: HonoContext<HttpEnv>, missing: Reason): Promise<Application> {
  const id = header(c, "applicationid");
  if (id === null) throw new Refusal(missing);
  const application = await findEnabled(c, id);
  if (!application) throw new Refusal("applicationid-unknown");
  return application;
}

/** The application that a server-side call proves to be, by ID and secret. Says nothing of which was wrong. */
export async function requireServer(c: HonoContext<HttpEnv>): Promise<Application> {
  const id = header(c, "applicationid");
  const secret = header(c, "applicationsecret");
  if (id === null || secret === null) throw new Refusal("credentials-wrong");
  const application = await findEnabled(c, id);
  if (!application) throw new Refusal("credentials-wrong");
  return requireSecret(c, application, secret);
}

/** @returns the application as it was when the secret was found right: the newest state when the cache denied it */
export async function requireSecret(
  c: HonoContext<HttpEnv>,
  application: Application,
  secret: string,
): Promise<Application> {
  if (await hasSecret(application, secret)) return application;
  // The secret may be newer than what this isolate remembers.
  const fresh = await findFresh(c, application.id);
  if (!fresh || fresh.isDisabled || !(await hasSecret(fresh, secret))) throw new Refusal("credentials-wrong");
  return fresh;
}

/** Whether the call carries a right secret, a wrong one, or none (contract section 5). */
export async function checkServer(
  c: HonoContext<HttpEnv>,
  application: Application,
): Promise<{ kind: "server" } | { kind: "device" }> {
  const secret = header(c, "applicationsecret");
  if (secret !== null) {
    await requireSecret(c, application, secret);
    return { kind: "server" };
  }
  if (application.requireSecret && (await findFresh(c, application.id))?.requireSecret !== false) {
    throw new Refusal("credentials-wrong");
  }
  return { kind: "device" };
}

async function findEnabled(c: HonoContext<HttpEnv>, id: string): Promise<Application | undefined> {
  const { registry, db, now } = c.get("context");
  const application = await registry.find(db, id, now());
  const enabled = application?.isDisabled ? await registry.findFresh(db, id, now()) : application;
  if (!enabled || enabled.isDisabled) return undefined;
  c.set("application", enabled.id);
  return enabled;
}

function findFresh(c: HonoContext<HttpEnv>, id: string): Promise<Application | undefined> {
  const { registry, db, now } = c.get("context");
  return registry.findFresh(db, id, now());
}

/** The udid as it was sent; its form is judged later, after the body (contract section 2). */
export function requireUdid(c: HonoContext<HttpEnv>): string {
  const udid = header(c, "udid");
  if (udid === null) throw new Refusal("udid-missing");
  return udid;
}

/** The name of the calling device in storage. */
export function requireDevice(c: HonoContext<HttpEnv>, application: Application, udid: string): Promise<string> {
  return deviceOf(c.get("context").custody, application, udid);
}
