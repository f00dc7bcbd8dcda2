import { Hono, type Context as HonoContext } from "hono";
import { requestId } from "hono/request-id";
import { routePath } from "hono/route";
import { secureHeaders } from "hono/secure-headers";
import { createContext } from "../context.ts";
import { log } from "../log.ts";
import { badgeRoutes } from "./badge-routes.ts";
import { docsRoutes } from "./docs-routes.ts";
import type { HttpEnv } from "./environment.ts";
import { answerError, answerException } from "./errors.ts";
import { invitationRoutes } from "./invitation-routes.ts";
import { listRoutes } from "./list-routes.ts";
import { openApiRoutes } from "./openapi-routes.ts";
import { drainUnread } from "./request-stream.ts";
import { serviceRoutes } from "./service-routes.ts";

/**
 * What an API's answers and its one page need (OWASP REST Security Cheat Sheet: HSTS, nosniff, framing). Left out is what
 * only pages that embed others need, what old browsers and plug-ins asked for, and what would keep other origins away.
 */
const SECURITY_HEADERS = {
  crossOriginResourcePolicy: false,
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
};

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
    log("info", {
      event: "request",
      requestId: c.get("requestId"),
      method: c.req.method,
      // The pattern, never the path: a path may hold an invitation token.
      route: routePath(c, -1),
      status: c.res.status,
      reason: c.get("reason"),
      application: c.get("application"),
      milliseconds: Date.now() - startedAt,
      d1RoundTrips: context.db.roundTrips,
    });
  })
  .use(secureHeaders(SECURITY_HEADERS))
  .route("/", badgeRoutes)
  .route("/", listRoutes)
  .route("/", invitationRoutes)
  .route("/", serviceRoutes)
  .route("/", openApiRoutes)
  .route("/", docsRoutes)
  .notFound((c) => answerError(c, "route-unknown"))
  .onError(answerException);
