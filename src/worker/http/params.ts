import { parseBadgeNumber } from "../../shared/badge-lifecycle/view.ts";
import { isUdid } from "../../shared/requests.ts";
import { ApiError } from "../api-error.ts";

/** @throws ApiError UNKNOWN_BADGE for anything that is not a badge number, as for a number that nobody has */
export function requireBadgeNumber(id: unknown): number {
  const number = typeof id === "string" ? parseBadgeNumber(id) : null;
  if (number === null) throw new ApiError("UNKNOWN_BADGE");
  return number;
}

export function requireValidUdid(udid: string): void {
  if (!isUdid(udid)) throw new ApiError("INVALID_UDID");
}
