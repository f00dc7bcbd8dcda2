import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import worker from "../../src/worker/index.ts";
import { fromSomewhere } from "./address.ts";
import { type Answer, type CallOptions, jsonOf } from "./http.ts";

/** Calls the Worker's entry with some of its bindings replaced; all others are the real ones. */
export function callWith(
  bindings: Partial<Env>,
  method: string,
  path: string,
  { headers = {}, body }: CallOptions = {},
): Promise<Answer> {
  const init = { method, headers, body: jsonOf(body) ?? null };
  return sendWith(bindings, new Request(`https://badges.example${path}`, init));
}

/** The same for a request as it is: a stream, headers that do not fit the body, another host. */
export async function sendWith(bindings: Partial<Env>, request: Request): Promise<Answer> {
  const execution = createExecutionContext();
  const response = await worker.fetch(fromSomewhere(request), { ...env, ...bindings }, execution);
  const text = await response.text();
  await waitOnExecutionContext(execution);
  // A status list is a JWT.
  const isJson = text !== "" && response.headers.get("content-type") === "application/json";
  return { status: response.status, body: isJson ? JSON.parse(text) : {}, headers: response.headers };
}

/** A rate limit that is never reached. The platform's takes much of a call's time in tests. */
export const UNLIMITED: RateLimit = { limit: async () => ({ success: true }) };

/** A limit of so many calls for each key, which keeps the keys that it is asked about. */
export function countedLimit(calls = Number.POSITIVE_INFINITY): RateLimit & { readonly keys: string[] } {
  const keys: string[] = [];
  const limit: RateLimit["limit"] = async ({ key }) => {
    keys.push(key);
    return { success: keys.filter((one) => one === key).length <= calls };
  };
  return { keys, limit };
}
