import type { Context as HonoContext } from "hono";
import type { Application } from "../applications/registry.ts";
import { Refusal } from "../refusal.ts";
import type { HttpEnv } from "./environment.ts";

/**
 * Damps device calls by the platform's rate-limit binding, per location (contract section 7). The binding's keys stay
 * with the platform, which stores none of them.
 */
export async function limitDevice(c: HonoContext<HttpEnv>, application: Application, device: string): Promise<void> {
  const { deviceLimit, clientIpLimit } = c.get("context");
  const clientIp = c.req.header("cf-connecting-ip") ?? "unknown";
  const [byDevice, byClientIp] = await Promise.all([
    deviceLimit.limit({ key: `${application.id}:${device}` }),
    clientIpLimit.limit({ key: `${application.id}:${clientIp}` }),
  ]);
  if (!byDevice.success || !byClientIp.success) throw new Refusal("rate-limited");
}
