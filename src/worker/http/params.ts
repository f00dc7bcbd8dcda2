import { parseBadgeNumber } from "../../shared/badge-lifecycle/view.ts";
import { isUdid } from "../../shared/requests.ts";
import { ApiError } from "../api-error.ts";

/** @throws ApiError UNKNOWN_BADGE for a text that is not a badge number, as for an unissued number */
export function requireBadgeNumber(id: unknown): number {
  const number = typeof id === "string" ? parseBadgeNumber(id) : null;
  if (number === null) throw new ApiError("UNKNOWN_BADGE");
  return number;
}

export function requireValidUdid(udid: string): void {
  if (!isUdid(udid)) throw new ApiError("INVALID_UDID");
}
