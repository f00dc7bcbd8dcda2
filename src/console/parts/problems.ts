import { BadgeServiceError, NoResponseError } from "../../client/index.ts";

/** What went wrong and what to do, in plain words. */
export function explain(error: unknown): string {
  if (error instanceof NoResponseError) {
    return "The service does not respond. Check your connection, then try again.";
  }
  if (!(error instanceof BadgeServiceError)) return "Something went wrong in this page. Reload it and sign in again.";
  switch (error.code) {
    case "INVALID_CREDENTIALS":
    case "INVALID_APPLICATIONID":
      return "The service does not know this application ID with this secret. Check both, or ask your administrator for a new secret.";
    case "UNKNOWN_BADGE":
      return "No badge has this number. Check the number.";
    case "ENDED_BADGE":
      return "The badge has ended meanwhile, so this is not possible any more.";
    case "UNKNOWN_INVITATION":
      return "The invitation has been revoked or has expired meanwhile. Load the list again.";
    case "CLAIMED_INVITATION":
      return "The invitation has been claimed meanwhile. To end the visitor's badge, revoke it under Badges.";
    case "EXPIRED_INVITATION":
      return "The invitation has expired meanwhile. There is nothing left to revoke.";
    case "UNKNOWN_EVENT":
      return "The service no longer keeps this delivery. Load the list again.";
    case "INVALID_EXPIRESAT":
      return "The service does not accept this time. Choose another.";
    case "INVALID_USERID":
      return "That cannot be a user ID. Check it.";
    case "NUMBERS_EXHAUSTED":
      return "All badge numbers are in use. Ask your administrator to extend the number range.";
    case "RATE_LIMITED":
      return "Too many refused calls came from your network. Wait a minute, then try again.";
    case "UNAVAILABLE":
      return "The service is overloaded or cannot reach its database. Try again in a minute.";
    default:
      return `The service did not accept this. Try again; if it happens again, tell your administrator: ${error.message}.`;
  }
}
