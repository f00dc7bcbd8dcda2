import type { ErrorCode } from "../shared/error-table.ts";
import type { ApplicationId } from "../shared/identifiers.ts";
import type { ProofFailure } from "./dpop/verify-proof.ts";
import type { TokenFailure } from "./users/verify-token.ts";

interface ApiErrorDetails {
  /**
   * Logged, but not sent. `no-proof`: a proof is required. `no-issuer-keys`: a user token cannot be checked.
   * `body-cut-off`: the caller hung up while sending its body. Other values name the fault of the proof or the user token.
   */
  detail?: "no-proof" | "no-issuer-keys" | "body-cut-off" | ProofFailure | TokenFailure;
  /** ID of the application whose secret was wrong or missing; logged and not sent. */
  applicationId?: ApplicationId | undefined;
  /** For the proof of the next call; sent as `DPoP-Nonce`. */
  nonce?: string | undefined;
  /** Sent as `WWW-Authenticate` in place of the code's own. */
  challenge?: string | undefined;
}

/** An HTTP error response. It is thrown before anything is written. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly detail: ApiErrorDetails["detail"];
  readonly applicationId: ApplicationId | undefined;
  readonly nonce: string | undefined;
  readonly challenge: string | undefined;

  constructor(code: ErrorCode, { detail, applicationId, nonce, challenge }: ApiErrorDetails = {}) {
    super(code);
    this.code = code;
    this.detail = detail;
    this.applicationId = applicationId;
    this.nonce = nonce;
    this.challenge = challenge;
  }
}
