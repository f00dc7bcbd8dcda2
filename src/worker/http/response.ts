import type { Context as HonoContext, MiddlewareHandler } from "hono";
import { type ErrorCode, PUBLIC_ERRORS } from "../../shared/error-table.ts";
import type { CursorCodec } from "../cursor.ts";
import type { HttpEnv } from "./environment.ts";

/**
 * Headers of the API's responses and pages (OWASP REST Security Cheat Sheet). Cross-origin policies are left out: they
 * would block the web pages that may call the device routes.
 */
const COMMON_HEADERS = {
  "Cache-Control": "no-store",
  "Strict-Transport-Security": "max-age=15552000; includeSubDomains",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "SAMEORIGIN",
  "Referrer-Policy": "no-referrer",
};

const ANY_ORIGIN_HEADERS = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": "x-request-id,retry-after,dpop-nonce,www-authenticate,bookmark",
};

const JSON_TYPE = { "Content-Type": "application/json" };

/** Copying them into each response takes a third of the time of setting each header. */
const JSON_HEADERS = new Headers({ ...COMMON_HEADERS, ...JSON_TYPE });
const ANY_ORIGIN_JSON_HEADERS = new Headers({ ...COMMON_HEADERS, ...ANY_ORIGIN_HEADERS, ...JSON_TYPE });

/** Every response is built by this function or by `rawResponse`. Callers may add headers. */
export function jsonResponse(c: HonoContext<HttpEnv>, body: object, status = 200): Response {
  const headers = c.get("anyOrigin") ? ANY_ORIGIN_JSON_HEADERS : JSON_HEADERS;
  const response = new Response(JSON.stringify(body), { status, headers });
  response.headers.set("X-Request-Id", c.get("requestId"));
  return response;
}

/**
 * A response that is not JSON: an asset, a status list, a redirect, a preflight. Its own headers override the common
 * ones.
 */
export function rawResponse(
  c: HonoContext<HttpEnv>,
  body: ReadableStream | string | null,
  status: number,
  own: Iterable<[string, string]>,
): Response {
  const headers = c.get("anyOrigin") ? { ...COMMON_HEADERS, ...ANY_ORIGIN_HEADERS } : COMMON_HEADERS;
  const response = new Response(body, { status, headers });
  for (const [name, value] of own) response.headers.set(name, value);
  response.headers.set("X-Request-Id", c.get("requestId"));
  return response;
}

export function errorResponse(c: HonoContext<HttpEnv>, code: ErrorCode): Response {
  const { status, retryAfterSeconds, challenge } = PUBLIC_ERRORS[code];
  c.set("code", code);
  const response = jsonResponse(c, { error: code }, status);
  if (retryAfterSeconds !== undefined) response.headers.set("Retry-After", String(retryAfterSeconds));
  if (challenge !== undefined) response.headers.set("WWW-Authenticate", challenge);
  return response;
}

/**
 * Lets caches keep the response. They serve it to other callers, so it must not have an ID that its first caller chose.
 */
export function publicResponse(c: HonoContext<HttpEnv>, response: Response, cacheControl: string): Response {
  const requestId = crypto.randomUUID();
  c.set("requestId", requestId);
  response.headers.set("X-Request-Id", requestId);
  response.headers.set("Cache-Control", cacheControl);
  return response;
}

/** A page of a list; it has a cursor if more follow. @param next the position after which the next page starts, or null */
export function pageResponse<Position>(
  c: HonoContext<HttpEnv>,
  body: object,
  codec: CursorCodec<Position>,
  next: Position | null,
): Response {
  const response = jsonResponse(c, body);
  if (next !== null) response.headers.set("pagination-cursor", codec.encode(next));
  return response;
}

const ONE_DAY_SECONDS = 24 * 3600;

const preflightHeaders = (methods: string, headers: string) =>
  Object.entries({
    ...ANY_ORIGIN_HEADERS,
    "Access-Control-Allow-Methods": methods,
    "Access-Control-Allow-Headers": headers,
    "Access-Control-Max-Age": String(ONE_DAY_SECONDS),
  });

const PREFLIGHT_HEADERS = preflightHeaders(
  "GET,POST,PATCH",
  "applicationid,udid,authorization,content-type,x-request-id,dpop,bookmark",
);

/**
 * Browsers let every page send a POST, even an unlisted one (Fetch, CORS-safelisted methods). They do not let it send an
 * unlisted header such as `udid`, which creating an invitation needs.
 */
const READING_PREFLIGHT_HEADERS = preflightHeaders("GET", "applicationid,invitationtoken,x-request-id");

/** Lets a web page of any origin call a device route (contract section 6). Server-side routes have no CORS headers. */
export const anyOrigin: MiddlewareHandler<HttpEnv> = (c, next) => {
  if (c.req.method === "OPTIONS") return Promise.resolve(rawResponse(c, null, 204, PREFLIGHT_HEADERS));
  c.set("anyOrigin", true);
  return next();
};

/** CORS for reading an invitation. Web pages may not create invitations, which is a POST to the same path. */
export const anyOriginMayRead: MiddlewareHandler<HttpEnv> = (c, next) => {
  if (c.req.method === "OPTIONS") return Promise.resolve(rawResponse(c, null, 204, READING_PREFLIGHT_HEADERS));
  if (c.req.method !== "POST") c.set("anyOrigin", true);
  return next();
};
