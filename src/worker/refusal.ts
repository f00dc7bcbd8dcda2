import type { Reason } from "../shared/error-table.ts";

export type { Reason };

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
