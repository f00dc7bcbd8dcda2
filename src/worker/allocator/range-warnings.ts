import type { ApplicationId } from "../../shared/identifiers.ts";
import { RANGE_WARNING_PERCENTS } from "../../shared/limits/allocator-limits.ts";
import type { RangeSegment } from "../../shared/schema.ts";
import { log } from "../log.ts";

/** Logs a warning when a group of calls brings the used share of the range to one of `RANGE_WARNING_PERCENTS`. */
export function warnIfFilling(
  applicationId: ApplicationId,
  before: readonly RangeSegment[],
  after: readonly RangeSegment[],
) {
  const share = shareUsed(after);
  const percent = RANGE_WARNING_PERCENTS.find((limit) => share >= limit);
  if (percent === undefined || shareUsed(before) >= percent) return;
  const left = after.reduce((sum, { size, used }) => sum + size - used, 0);
  log("warn", { event: "range-fills-up", application: applicationId, usedPercent: percent, left });
}

/** In percent; without a segment it is NaN, which reaches no limit. */
function shareUsed(segments: readonly RangeSegment[]): number {
  const size = segments.reduce((sum, segment) => sum + segment.size, 0);
  return (segments.reduce((sum, { used }) => sum + used, 0) * 100) / size;
}
