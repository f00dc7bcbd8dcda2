/**
 * Why a request is refused. Tags of our own: only the error table of `http` knows statuses and public codes.
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

/** A request that cannot be granted; nothing was changed. */
export class Refusal extends Error {
  readonly reason: Reason;
  /** ID of the application whose secret was wrong or missing, for the log. */
  readonly applicationId: string | undefined;

  constructor(reason: Reason, applicationId?: string) {
    super(reason);
    this.name = "Refusal";
    this.reason = reason;
    this.applicationId = applicationId;
  }
}
