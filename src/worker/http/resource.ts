import type { Context as HonoContext, MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { MAX_BODY_BYTES } from "../../shared/limits.ts";
import type { HttpEnv } from "./environment.ts";
import { answerError } from "./errors.ts";
import { readUpTo } from "./request-stream.ts";

const ONE_DAY_SECONDS = 24 * 3600;

const EXPOSED_HEADERS = ["x-request-id", "retry-after"];

const answerPreflight = cors({
  origin: "*",
  allowMethods: ["GET", "POST"],
  allowHeaders: ["applicationid", "udid", "content-type", "x-request-id"],
  exposeHeaders: EXPOSED_HEADERS,
  maxAge: ONE_DAY_SECONDS,
});

/**
 * Lets a web page of any origin call a device route (contract section 6). Server-side routes have no CORS headers.
 * Hono's middleware is asked for the preflight only: on any other call it makes a response of its own first, so that
 * every answer would be made three times.
 */
export const anyOrigin: MiddlewareHandler<HttpEnv> = (c, next) => {
  if (c.req.method === "OPTIONS") return answerPreflight(c, next);
  c.header("Access-Control-Allow-Origin", "*");
  c.header("Access-Control-Expose-Headers", EXPOSED_HEADERS.join(","));
  return next();
};

/**
 * Refuses bodies over 16 KiB, also those that do not say their length (contract section 7). The latter are read here,
 * and kept for `readBody`. Not Hono's middleware: it leaves a body that is too long half read.
 */
export const limitBody: MiddlewareHandler<HttpEnv> = async (c, next) => {
  const { body, headers } = c.req.raw;
  if (body === null) return next();
  const declared = headers.has("transfer-encoding") ? null : headers.get("content-length");
  if (declared !== null) return Number(declared) > MAX_BODY_BYTES ? answerError(c, "PAYLOAD_TOO_LARGE") : next();
  const bytes = await readUpTo(body, MAX_BODY_BYTES);
  if (bytes === null) return answerError(c, "PAYLOAD_TOO_LARGE");
  c.set("body", bytes);
  return next();
};

/** Answers every other method of a path. Registered after the path's own. */
export function methodNotAllowed(...allowed: readonly string[]): (c: HonoContext<HttpEnv>) => Response {
  const allow = allowed.join(", ");
  return (c) => {
    c.header("Allow", allow);
    return answerError(c, "METHOD_NOT_ALLOWED");
  };
}
