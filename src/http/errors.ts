import type { Context as HonoContext } from "hono";
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { RATE_LIMIT_WINDOW_SECONDS, UNAVAILABLE_RETRY_SECONDS } from "../limits.ts";
import { log } from "../log.ts";
import { Unavailable } from "../platform.ts";
import { type Reason, Refusal } from "../refusal.ts";
import type { HttpEnv } from "./environment.ts";

export interface PublicError {
  status: ContentfulStatusCode;
  code: string;
  /** Seconds, for the `Retry-After` header. */
  retryAfterSeconds?: number;
}

/** The one place that knows statuses and public codes (contract section 6). */
export const PUBLIC_ERRORS: Record<Reason, PublicError> = {
  "body-not-json": { status: 400, code: "INVALID_JSON" },
  "applicationid-unknown": { status: 401, code: "INVALID_APPLICATIONID" },
  "credentials-wrong": { status: 401, code: "INVALID_CREDENTIALS" },
  "route-unknown": { status: 404, code: "NOT_FOUND" },
  "application-unknown": { status: 404, code: "UNKNOWN_APPLICATION" },
  "badge-unknown": { status: 404, code: "UNKNOWN_BADGE" },
  "invitation-unknown": { status: 404, code: "UNKNOWN_INVITATION" },
  "method-not-allowed": { status: 405, code: "METHOD_NOT_ALLOWED" },
  "invitation-claimed": { status: 409, code: "CLAIMED_INVITATION" },
  "invitation-expired": { status: 410, code: "EXPIRED_INVITATION" },
  "invitation-revoked": { status: 410, code: "REVOKED_INVITATION" },
  "body-too-large": { status: 413, code: "PAYLOAD_TOO_LARGE" },
  "applicationid-missing": { status: 422, code: "UNDEFINED_APPLICATIONID" },
  "udid-missing": { status: 422, code: "UNDEFINED_UDID" },
  "userid-missing": { status: 422, code: "UNDEFINED_USERID" },
  "base64-missing": { status: 422, code: "UNDEFINED_BASE64" },
  "expiresat-missing": { status: 422, code: "UNDEFINED_EXPIRESAT" },
  "udid-invalid": { status: 422, code: "INVALID_UDID" },
  "userid-invalid": { status: 422, code: "INVALID_USERID" },
  "metadata-invalid": { status: 422, code: "INVALID_METADATA" },
  "base64-invalid": { status: 422, code: "INVALID_BASE64" },
  "expiresat-invalid": { status: 422, code: "INVALID_EXPIRESAT" },
  "invitationtoken-invalid": { status: 422, code: "INVALID_INVITATIONTOKEN" },
  "per-page-invalid": { status: 422, code: "INVALID_PER_PAGE" },
  "cursor-invalid": { status: 422, code: "INVALID_CURSOR" },
  "rate-limited": { status: 429, code: "RATE_LIMITED", retryAfterSeconds: RATE_LIMIT_WINDOW_SECONDS },
  internal: { status: 500, code: "INTERNAL_ERROR" },
  "numbers-exhausted": { status: 503, code: "NUMBERS_EXHAUSTED" },
  unavailable: { status: 503, code: "UNAVAILABLE", retryAfterSeconds: UNAVAILABLE_RETRY_SECONDS },
};

/** Answers with the public error of a reason. */
export function answerError(c: HonoContext<HttpEnv>, reason: Reason): Response {
  const { status, code, retryAfterSeconds } = PUBLIC_ERRORS[reason];
  c.set("reason", reason);
  if (retryAfterSeconds !== undefined) c.header("Retry-After", String(retryAfterSeconds));
  return c.json({ error: code }, status);
}

/** Every exception ends here; what it says stays in the log. */
export function answerException(error: Error, c: HonoContext<HttpEnv>): Response {
  if (error instanceof Refusal) return answerError(c, error.reason);
  const reason = error instanceof Unavailable ? "unavailable" : "internal";
  // Hono throws for a URL it cannot route, such as a malformed percent-encoding.
  if (error instanceof HTTPException && error.status < 500) return answerError(c, "route-unknown");
  log("error", { event: "request-failed", requestId: c.get("requestId"), reason, error });
  return answerError(c, reason);
}
