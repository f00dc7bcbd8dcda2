import { BadgeServiceError, NoResponseError } from "../../client/index.ts";

const TEXTS: Readonly<Record<string, string>> = {
  INVALID_CREDENTIALS:
    "The service does not know this application ID with this secret. Check both, or ask your administrator for a new secret.",
  INVALID_APPLICATIONID: "The service does not know this application ID. Check it, or ask your administrator.",
  READ_ONLY: "Your role does not allow this. Ask your administrator for another role.",
  DOOR_ONLY: "This secret is a door's. Sign in with your own.",
  UNKNOWN_BADGE: "No badge has this number. Check the number.",
  ENDED_BADGE: "The badge has ended meanwhile, so this is not possible any more.",
  CHANGED_BADGE: "A colleague has changed the badge meanwhile. Look at it again.",
  UNKNOWN_INVITATION: "The invitation has been revoked or has expired meanwhile. Refresh the list.",
  CLAIMED_INVITATION: "The invitation has been claimed meanwhile. To end the visitor's badge, revoke it under Badges.",
  EXPIRED_INVITATION: "The invitation has expired meanwhile. There is nothing left to revoke.",
  UNKNOWN_EVENT: "The service no longer keeps this delivery. Refresh the list.",
  INVALID_EXPIRESAT: "The service does not accept this time. Choose one in the future, at most a year ahead.",
  INVALID_BADGEEXPIRESAT: "“Until” must be in the future, at most ten years ahead.",
  INVALID_STARTSAT: "“From” must be before “Until”.",
  INVALID_NAME: "The name must have 1 to 100 characters.",
  INVALID_USERID: "That cannot be a user ID. Check it.",
  NUMBERS_EXHAUSTED: "All badge numbers are in use. Ask your administrator to extend the number range.",
  RATE_LIMITED: "Too many refused calls came from your network. Wait a minute, then try again.",
  UNAVAILABLE: "The service is overloaded or cannot reach its database. Try again in a minute.",
};

/** What a code of the service means, and what to do. */
export const explainCode = (code: string): string =>
  TEXTS[code] ?? `The service did not accept this. Try again; if it happens again, tell your administrator: ${code}.`;

/** What went wrong and what to do, in plain words. */
export function explain(error: unknown): string {
  if (error instanceof NoResponseError) {
    return "The service does not respond. Check your connection, then try again.";
  }
  if (!(error instanceof BadgeServiceError)) return "Something went wrong in this page. Reload it and sign in again.";
  const { code, message } = error;
  return code !== null && code in TEXTS ? explainCode(code) : explainCode(message);
}
