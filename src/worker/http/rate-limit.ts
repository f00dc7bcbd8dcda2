import type { Context as HonoContext } from "hono";
import { clientBlock } from "../applications/client-address.ts";
import { hasSecret } from "../applications/credentials.ts";
import type { Application } from "../applications/registry.ts";
import { retryPlatform } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import { clientAddress, header } from "./authentication.ts";
import type { HttpEnv } from "./environment.ts";

/**
 * Damps device calls by the platform's rate-limit binding, per location (contract section 7). The binding's keys stay
 * with the platform, which stores none of them. A call with a valid secret is a server's, and not limited.
 */
export async function limitDevice(c: HonoContext<HttpEnv>, application: Application, device: string): Promise<void> {
  const secret = header(c, "applicationsecret");
  if (secret !== null && (await hasSecret(application, secret))) return;
  const { deviceLimit, clientIpLimit } = c.get("context");
  const [byDevice, byClientIp] = await retryPlatform("rate limit", () =>
    Promise.all([
      deviceLimit.limit({ key: `${application.id}:${device}` }),
      clientIpLimit.limit({ key: `${application.id}:${clientBlock(clientAddress(c))}` }),
    ]),
  );
  if (!byDevice.success || !byClientIp.success) throw new Refusal("RATE_LIMITED");
}
