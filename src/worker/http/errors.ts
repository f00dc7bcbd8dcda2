import type { Context as HonoContext } from "hono";
import { HTTPException } from "hono/http-exception";
import { type ErrorCode, PUBLIC_ERRORS } from "../../shared/error-table.ts";
import { log } from "../log.ts";
import { Unavailable } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import type { HttpEnv } from "./environment.ts";

/** Answers with a public error. */
export function answerError(c: HonoContext<HttpEnv>, code: ErrorCode): Response {
  const { status, retryAfterSeconds } = PUBLIC_ERRORS[code];
  c.set("code", code);
  if (retryAfterSeconds !== undefined) c.header("Retry-After", String(retryAfterSeconds));
  return c.json({ error: code }, status);
}

/** Every exception ends here; what it says stays in the log. */
export function answerException(error: Error, c: HonoContext<HttpEnv>): Response {
  if (error instanceof Refusal) {
    if (error.applicationId !== undefined) c.set("application", error.applicationId);
    if (error.detail !== undefined) c.set("detail", error.detail);
    return answerError(c, error.code);
  }
  const code = error instanceof Unavailable ? "UNAVAILABLE" : "INTERNAL_ERROR";
  // Hono throws for a URL it cannot route, such as a malformed percent-encoding.
  if (error instanceof HTTPException && error.status < 500) return answerError(c, "NOT_FOUND");
  log("error", { event: "request-failed", requestId: c.get("requestId"), code, error });
  return answerError(c, code);
}
