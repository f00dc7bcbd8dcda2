import type { Context as HonoContext, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { cors } from "hono/cors";
import { MAX_BODY_BYTES } from "../limits.ts";
import type { HttpEnv } from "./environment.ts";
import { answerError } from "./errors.ts";

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

/** Refuses bodies over 16 KiB, also those that do not say their length (contract section 7). */
export const limitBody: MiddlewareHandler<HttpEnv> = bodyLimit({
  maxSize: MAX_BODY_BYTES,
  onError: (c) => answerError(c, "body-too-large"),
});

/** Answers every other method of a path. Registered after the path's own. */
export function methodNotAllowed(...allowed: readonly string[]): (c: HonoContext<HttpEnv>) => Response {
  const allow = allowed.join(", ");
  return (c) => {
    c.header("Allow", allow);
    return answerError(c, "method-not-allowed");
  };
}
