import type { ErrorCode } from "../shared/error-table.ts";
import type { ApplicationId } from "../shared/identifiers.ts";
import type { ProofFailure } from "./proofs/proof.ts";

interface RefusalDetails {
  /**
   * Logged and not sent. `contended`: concurrent calls changed the same rows at every attempt; nothing failed. `no-proof`: one
   * is required. Others: what is wrong with the proof.
   */
  detail?: "contended" | "no-proof" | ProofFailure;
  /** ID of the application whose secret was wrong or missing; logged and not sent. */
  applicationId?: ApplicationId | undefined;
  /** For the proof of the next call; sent as `DPoP-Nonce`. */
  nonce?: string | undefined;
}

/** A request is refused; nothing was changed. */
export class Refusal extends Error {
  readonly code: ErrorCode;
  readonly detail: RefusalDetails["detail"];
  readonly applicationId: ApplicationId | undefined;
  readonly nonce: string | undefined;

  constructor(code: ErrorCode, { detail, applicationId, nonce }: RefusalDetails = {}) {
    super(code);
    this.name = "Refusal";
    this.code = code;
    this.detail = detail;
    this.applicationId = applicationId;
    this.nonce = nonce;
  }
}
