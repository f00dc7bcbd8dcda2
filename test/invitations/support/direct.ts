import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { app } from "../../../src/worker/http/app.ts";
import type { Answer } from "../../support/http.ts";

/**
 * Calls the Worker's HTTP application in place, without the rate limits: for tests of thousands of calls, which would
 * spend most of their time on the way through the runtime and its limiters.
 */
export async function callDirectly(
  method: string,
  path: string,
  { headers, body }: { headers: Record<string, string>; body?: unknown },
): Promise<Answer> {
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
  const response = await app.fetch(
    new Request(`https://badges.example${path}`, init),
    UNLIMITED,
    createExecutionContext(),
  );
  return { status: response.status, body: await response.json(), headers: response.headers };
}

const noLimit: RateLimit = { limit: async () => ({ success: true }) };
const UNLIMITED = { ...env, DEVICE_LIMIT: noLimit, CLIENT_IP_LIMIT: noLimit };
