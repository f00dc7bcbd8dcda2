import { Hono, type Context as HonoContext } from "hono";
import { HTTPException } from "hono/http-exception";
import { routePath } from "hono/route";
import { homeOf } from "../../shared/homes.ts";
import { parseApplicationId } from "../../shared/identifiers.ts";
import { parseLogSample } from "../../shared/log-sample.ts";
import { REQUEST_ID } from "../../shared/requests.ts";
import { ApiError } from "../api-error.ts";
import { createContext } from "../context.ts";
import { findHome, firstHome, type Home } from "../homes.ts";
import { log } from "../log.ts";
import { Unavailable } from "../platform.ts";
import { applicationRoutes } from "./application-routes.ts";
import { header } from "./authentication.ts";
import { badgeLifecycleRoutes } from "./badge-lifecycle-routes.ts";
import { badgeRoutes } from "./badge-routes.ts";
import { drainUnread } from "./body-limit.ts";
import { consoleRoutes } from "./console-routes.ts";
import { docsRoutes } from "./docs-routes.ts";
import type { HttpEnv } from "./environment.ts";
import { eventRoutes } from "./event-routes.ts";
import { historyRoutes } from "./history-routes.ts";
import { invitationRoutes } from "./invitation-routes.ts";
import { listRoutes } from "./list-routes.ts";
import { liveRoutes } from "./live-routes.ts";
import { ownBadgeRoutes } from "./own-badge-routes.ts";
import { passRoutes } from "./pass-routes.ts";
import { errorResponse } from "./response.ts";
import { serviceRoutes } from "./service-routes.ts";
import { statusRoutes } from "./status-routes.ts";
import { userRoutes } from "./user-routes.ts";

/** The HTTP side of the service: the common middleware, then one file per resource. */
export const app = new Hono<HttpEnv>()
  .use(async (c, next) => {
    const startedAt = Date.now();
    const context = createContext(c.env, (work) => c.executionCtx.waitUntil(work), homeOfCall(c));
    c.set("context", context);
    c.set("requestId", requestIdOf(c.req.raw));
    await next();
    const drained = drainUnread(c.req.raw);
    if (drained !== undefined) await drained;
    // Every refused call is logged, except a door's call for a status list that does not exist yet. Other calls are
    // sampled.
    const isRefused = c.res.status >= 400 && c.get("code") !== "UNKNOWN_STATUSLIST";
    const sample = isRefused ? 1 : (parseLogSample(c.env.LOG_SAMPLE) ?? 1);
    if (Math.random() * sample >= 1) return;
    log("info", {
      event: "request",
      requestId: c.get("requestId"),
      method: c.req.method,
      // The pattern, never the path: a path may hold an invitation token.
      route: c.get("route") ?? routePath(c, -1),
      status: c.res.status,
      code: c.get("code"),
      detail: c.get("detail"),
      application: c.get("application"),
      milliseconds: Date.now() - startedAt,
      roundTrips: context.db.primaryCalls + context.allocator.calls,
      sample,
    });
  })
  .route("/", badgeRoutes)
  .route("/", ownBadgeRoutes)
  .route("/", listRoutes)
  .route("/", badgeLifecycleRoutes)
  .route("/", userRoutes)
  .route("/", applicationRoutes)
  .route("/", invitationRoutes)
  .route("/", historyRoutes)
  .route("/", eventRoutes)
  .route("/", serviceRoutes)
  .route("/", statusRoutes)
  .route("/", liveRoutes)
  .route("/", docsRoutes)
  .route("/", consoleRoutes)
  .route("/", passRoutes)
  .notFound(handleUnknown)
  .onError(handleException);

/** Paths of key sets and status lists, whose callers send no `applicationid` header. */
const APPLICATION_PATHS = "/v1/applications/";

/** The home of the application that a call names in its path or header; home 1 if it names none, or one that is not bound. */
function homeOfCall(c: HonoContext<HttpEnv>): Home {
  const { env } = c;
  const { path } = c.req;
  if (!path.startsWith("/v1/")) return firstHome(env);
  const isInPath = path.startsWith(APPLICATION_PATHS);
  const text = isInPath ? path.slice(APPLICATION_PATHS.length).split("/", 1)[0] : header(c, "applicationid");
  const id = parseApplicationId(text ?? "");
  return (id && findHome(env, homeOf(id))) ?? firstHome(env);
}

/** Handles a call without a route: 405 if its path has a route for another method, else 404. */
function handleUnknown(c: HonoContext<HttpEnv>): Response {
  const routeOf = (method: string) =>
    app.router.match(method, c.req.path)[0].find(([[, route]]) => route.method === method)?.[0][1];
  const allowed = METHODS.filter((method) => routeOf(method) !== undefined);
  const [first] = allowed;
  if (first === undefined) return errorResponse(c, "NOT_FOUND");
  c.set("route", routeOf(first)?.path);
  const response = errorResponse(c, "METHOD_NOT_ALLOWED");
  const implied = [...(first === "GET" ? ["HEAD"] : []), ...(c.get("anyOrigin") ? ["OPTIONS"] : [])];
  response.headers.set("Allow", [...allowed, ...implied].join(", "));
  return response;
}

/** The methods of all routes. */
const METHODS = ["GET", "POST", "PATCH"];

function requestIdOf({ headers }: Request): string {
  const given = headers.get("x-request-id");
  return given !== null && REQUEST_ID.test(given) ? given : crypto.randomUUID();
}

/** Handles every exception; its message goes only to the log. */
function handleException(error: Error, c: HonoContext<HttpEnv>): Response {
  if (error instanceof ApiError) {
    if (error.applicationId !== undefined) c.set("application", error.applicationId);
    if (error.detail !== undefined) c.set("detail", error.detail);
    const response = errorResponse(c, error.code);
    if (error.nonce !== undefined) response.headers.set("DPoP-Nonce", error.nonce);
    if (error.challenge !== undefined) response.headers.set("WWW-Authenticate", error.challenge);
    return response;
  }
  // Hono throws for a URL it cannot route, such as a malformed percent-encoding.
  if (error instanceof HTTPException && error.status < 500) return errorResponse(c, "NOT_FOUND");
  const code = error instanceof Unavailable ? "UNAVAILABLE" : "INTERNAL_ERROR";
  log("error", { event: "request-failed", requestId: c.get("requestId"), code, error });
  return errorResponse(c, code);
}
