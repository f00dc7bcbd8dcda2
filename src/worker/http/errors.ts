import type { Context as HonoContext } from "hono";
import { HTTPException } from "hono/http-exception";
import { PUBLIC_ERRORS } from "../../shared/error-table.ts";
import { log } from "../log.ts";
import { Unavailable } from "../platform.ts";
import { type Reason, Refusal } from "../refusal.ts";
import type { HttpEnv } from "./environment.ts";

export { PUBLIC_ERRORS };

/** Answers with the public error of a reason. */
export function answerError(c: HonoContext<HttpEnv>, reason: Reason): Response {
  const { status, code, retryAfterSeconds } = PUBLIC_ERRORS[reason];
  c.set("reason", reason);
  if (retryAfterSeconds !== undefined) c.header("Retry-After", String(retryAfterSeconds));
  return c.json({ error: code }, status);
}

/** Every exception ends here; what it says stays in the log. */
export function answerException(error: Error, c: HonoContext<HttpEnv>): Response {
  if (error instanceof Refusal) {
    if (error.applicationId !== undefined) c.set("application", error.applicationId);
    return answerError(c, error.reason);
  }
  const reason = error instanceof Unavailable ? "unavailable" : "internal";
  // Hono throws for a URL it cannot route, such as a malformed percent-encoding.
  if (error instanceof HTTPException && error.status < 500) return answerError(c, "route-unknown");
  log("error", { event: "request-failed", requestId: c.get("requestId"), reason, error });
  return answerError(c, reason);
}
