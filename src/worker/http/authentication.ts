import type { Context as HonoContext } from "hono";
import * as authentication from "../applications/authentication.ts";
import { deviceOf } from "../applications/devices.ts";
import type { Application } from "../applications/registry.ts";
import { Refusal } from "../refusal.ts";
import type { HttpEnv } from "./environment.ts";

/** A header's value; empty or blank counts as missing (contract section 2). */
export function header(c: HonoContext<HttpEnv>, name: string): string | null {
  const value = c.req.header(name);
  return value === undefined || value.trim() === "" ? null : value;
}

/** The caller's IP address, as the platform saw it. Only a platform other than Cloudflare's leaves it out. */
export function clientAddress(c: HonoContext<HttpEnv>): string {
  return c.req.header("cf-connecting-ip") ?? "unknown";
}

function credentials(c: HonoContext<HttpEnv>): authentication.Credentials {
  return {
    applicationId: header(c, "applicationid"),
    secret: header(c, "applicationsecret"),
    clientAddress: clientAddress(c),
  };
}

/** Names the application in the request's log line. */
function logged<Who extends { application: Application }>(c: HonoContext<HttpEnv>, who: Who): Who {
  c.set("application", who.application.id);
  return who;
}

export async function requireApplication(
  c: HonoContext<HttpEnv>,
  missing: "UNDEFINED_APPLICATIONID" | "INVALID_APPLICATIONID",
): Promise<Application> {
  const application = await authentication.requireApplication(c.get("context"), credentials(c), missing);
  return logged(c, { application }).application;
}

export async function requireServer(c: HonoContext<HttpEnv>): Promise<Application> {
  const application = await authentication.requireServer(c.get("context"), credentials(c));
  return logged(c, { application }).application;
}

export async function identifyCaller(c: HonoContext<HttpEnv>) {
  return logged(c, await authentication.identifyCaller(c.get("context"), credentials(c)));
}

export async function identifyRevoker(c: HonoContext<HttpEnv>) {
  return logged(c, await authentication.identifyRevoker(c.get("context"), credentials(c), header(c, "udid")));
}

/** The udid as it was sent; its form is judged later, after the body (contract section 2). */
export function requireUdid(c: HonoContext<HttpEnv>): string {
  const udid = header(c, "udid");
  if (udid === null) throw new Refusal("UNDEFINED_UDID");
  return udid;
}

/** The name of the calling device in storage. */
export function requireDevice(c: HonoContext<HttpEnv>, application: Application, udid: string): Promise<string> {
  return deviceOf(c.get("context").custody, application, udid);
}
