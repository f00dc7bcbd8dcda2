import type { ErrorCode } from "../shared/error-table.ts";

/** What only the log tells of a refusal. */
interface RefusalDetails {
  /** `contended`: other calls kept changing what this one needs, for as often as it tried. Nothing failed. */
  detail?: "contended";
  /** ID of the application whose secret was wrong or missing. */
  applicationId?: string | undefined;
}

/** A request that cannot be granted; nothing was changed. */
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
