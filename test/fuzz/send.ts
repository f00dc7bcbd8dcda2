import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import worker from "../../src/worker/index.ts";
import { fromSomewhere } from "../support/address.ts";
import { UNLIMITED } from "../support/bindings.ts";
import type { Exchange } from "../support/documented.ts";
import type { FuzzRequest } from "./requests.ts";

const bindings = { ...env, DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED, REFUSED_CALL_LIMIT: UNLIMITED };

/** Sends a request straight to the Worker's entry: thousands are far over the rate limits, which are not tested here. */
export async function send({ method, path, headers, body, isChunked }: FuzzRequest): Promise<Exchange> {
  const sent = body === null ? {} : { body: isChunked ? new Blob([body]).stream() : body };
  const request = new Request(`https://badges.example${path}`, { method, headers, ...sent });
  const execution = createExecutionContext();
  const response = await worker.fetch(fromSomewhere(request), bindings, execution);
  const text = await response.text();
  await waitOnExecutionContext(execution);
  // As the service saw it: a URL resolves "." and ".." as steps (RFC 3986 section 5.2.4).
  const { pathname, search } = new URL(request.url);
  return { method, path: pathname + search, status: response.status, headers: response.headers, body: text };
}
