import type { ErrorCode } from "../shared/error-table.ts";

/** What is logged about a refusal and not sent. */
interface RefusalDetails {
  /** `contended`: concurrent calls changed the same rows at every attempt. Nothing failed. */
  detail?: "contended";
  /** ID of the application whose secret was wrong or missing. */
  applicationId?: string | undefined;
}

/** A request is refused; nothing was changed. */
export class Refusal extends Error {
  readonly code: ErrorCode;
  readonly detail: RefusalDetails["detail"];
  readonly applicationId: string | undefined;

  constructor(code: ErrorCode, { detail, applicationId }: RefusalDetails = {}) {
    super(code);
    this.name = "Refusal";
    this.code = code;
    this.detail = detail;
    this.applicationId = applicationId;
  }
}
