import { Hono, type Context as HonoContext } from "hono";
import { requestId } from "hono/request-id";
import { routePath } from "hono/route";
import { createContext } from "../context.ts";
import { log } from "../log.ts";
import { badgeLifeRoutes } from "./badge-life-routes.ts";
import { badgeRoutes } from "./badge-routes.ts";
import { docsRoutes } from "./docs-routes.ts";
import type { HttpEnv } from "./environment.ts";
import { answerError, answerException } from "./errors.ts";
import { invitationRoutes } from "./invitation-routes.ts";
import { listRoutes } from "./list-routes.ts";
import { drainUnread } from "./request-stream.ts";
import { serviceRoutes } from "./service-routes.ts";

/**
 * What an API's responses and its one page need (OWASP REST Security Cheat Sheet). Cross-origin policies are left out:
 * they would keep the web pages away that may call the device routes.
 */
const SECURITY_HEADERS = [
  ["Strict-Transport-Security", "max-age=15552000; includeSubDomains"],
  ["X-Content-Type-Options", "nosniff"],
  ["X-Frame-Options", "SAMEORIGIN"],
  ["Referrer-Policy", "no-referrer"],
] as const;

/** A response that a cache may hand to others does not carry an ID that its first caller chose. */
function replaceRequestId(c: HonoContext<HttpEnv>, headers: Headers): void {
  if (headers.get("Cache-Control") === "no-store") return;
  const own = crypto.randomUUID();
  c.set("requestId", own);
  headers.set("X-Request-Id", own);
}

/** The HTTP side of the service: what every request gets, then one file a resource. */
export const app = new Hono<HttpEnv>()
  .use(requestId())
  .use(async (c, next) => {
    const startedAt = Date.now();
    const context = createContext(c.env, (work) => c.executionCtx.waitUntil(work));
    c.set("context", context);
    await next();
    const drained = drainUnread(c.req.raw);
    if (drained !== undefined) await drained;
    // Not by `c.header`, which would make the response anew, as a stream.
    const { headers } = c.res;
    if (!headers.has("Cache-Control")) headers.set("Cache-Control", "no-store");
    else if (c.req.header("x-request-id") !== undefined) replaceRequestId(c, headers);
    for (const [name, value] of SECURITY_HEADERS) headers.set(name, value);
    log("info", {
      event: "request",
      requestId: c.get("requestId"),
      method: c.req.method,
      // The pattern, never the path: a path may hold an invitation token.
      route: routePath(c, -1),
      status: c.res.status,
      code: c.get("code"),
      detail: c.get("detail"),
      application: c.get("application"),
      milliseconds: Date.now() - startedAt,
      d1RoundTrips: context.db.roundTrips,
    });
  })
  .route("/", badgeRoutes)
  .route("/", listRoutes)
  .route("/", badgeLifeRoutes)
  .route("/", invitationRoutes)
  .route("/", serviceRoutes)
  .route("/", docsRoutes)
  .notFound((c) => answerError(c, "NOT_FOUND"))
  .onError(answerException);
