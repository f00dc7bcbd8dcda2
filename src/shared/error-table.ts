import type { ContentfulStatusCode } from "hono/utils/http-status";
import { RATE_LIMIT_WINDOW_SECONDS, UNAVAILABLE_RETRY_SECONDS } from "./limits.ts";

/**
 * Why a request is refused. Tags of our own: only the table below knows statuses and public codes.
 */
export type Reason =
  | "applicationid-missing"
  | "applicationid-unknown"
  | "credentials-wrong"
  | "udid-missing"
  | "udid-invalid"
  | "body-not-json"
  | "body-too-large"
  | "userid-missing"
  | "userid-invalid"
  | "metadata-invalid"
  | "base64-missing"
  | "base64-invalid"
  | "expiresat-missing"
  | "expiresat-invalid"
  | "invitationtoken-invalid"
  | "per-page-invalid"
  | "cursor-invalid"
  | "application-unknown"
  | "badge-unknown"
  | "invitation-unknown"
  | "invitation-claimed"
  | "invitation-revoked"
  | "invitation-expired"
  | "rate-limited"
  | "numbers-exhausted"
  | "route-unknown"
  | "method-not-allowed"
  /** Others kept changing what the request needs, for as often as it tried: nothing failed. */
  | "contended"
  | "unavailable"
  | "internal";

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
  contended: { status: 503, code: "UNAVAILABLE", retryAfterSeconds: UNAVAILABLE_RETRY_SECONDS },
  unavailable: { status: 503, code: "UNAVAILABLE", retryAfterSeconds: UNAVAILABLE_RETRY_SECONDS },
};
