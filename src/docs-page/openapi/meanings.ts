import type { ErrorCode } from "../../shared/error-table.ts";
import {
  CLIENT_IP_CALLS_PER_MINUTE,
  DEVICE_CALLS_PER_MINUTE,
  MAX_BADGE_DAYS,
  MAX_BODY_BYTES,
  MAX_CLIENT_SIGNATURE_BYTES,
  MAX_DATE_TIME_CHARACTERS,
  MAX_INVITATION_DAYS,
  MAX_METADATA_CHARACTERS,
  MAX_UDID_CHARACTERS,
  MAX_USER_ID_CHARACTERS,
  REFUSED_CALLS_PER_MINUTE,
  UNAVAILABLE_RETRY_SECONDS,
} from "../../shared/limits.ts";

/** What an error code means, and what its receiver does about it. */
export interface Meaning {
  meaning: string;
  remedy: string;
}

const FIX_REQUEST = "Correct the request; the same one will fail again.";
const ASK_NEW_INVITATION = "Ask the application's server for a new invitation.";

/** In words, for people: every code of the error table. */
export const MEANINGS: Record<ErrorCode, Meaning> = {
  INVALID_JSON: {
    meaning: "The body is not JSON in UTF-8, or not an object.",
    remedy: FIX_REQUEST,
  },
  INVALID_APPLICATIONID: {
    meaning: "The application ID is unknown, or an administrator has disabled the application.",
    remedy: "Check the ID that was issued to you. Do not retry.",
  },
  INVALID_CREDENTIALS: {
    meaning:
      "Application ID and secret do not belong together, one of them is missing, or the application is disabled.",
    remedy:
      "Check both. Which one is wrong is not told. If a secret is being changed, use the new one. Do not retry as it is.",
  },
  SUSPENDED_BADGE: {
    meaning: "The badge is suspended for now.",
    remedy: "Tell the user to ask whoever runs the application. It may be resumed.",
  },
  REVOKED_BADGE: {
    meaning: "The badge was revoked. Logging in does not bring it back.",
    remedy: "Tell the user to ask whoever runs the application: its server can invite the device again.",
  },
  EXPIRED_BADGE: {
    meaning: "The badge's end has passed.",
    remedy: "Tell the user to ask whoever runs the application. It may be given a later end.",
  },
  BLOCKED_USER: {
    meaning: "The application has blocked the user.",
    remedy: "Tell the user to ask whoever runs the application. Do not retry.",
  },
  NOT_FOUND: { meaning: "There is no such path.", remedy: "Check the path." },
  METHOD_NOT_ALLOWED: {
    meaning: "The path does not take this method.",
    remedy: "Use one of those in the `Allow` header.",
  },
  UNKNOWN_APPLICATION: { meaning: "No application has this ID.", remedy: "Check the application ID." },
  UNKNOWN_BADGE: {
    meaning: "This device has no badge of the application yet.",
    remedy: "Call `POST /v1/badge` for the user who is logged in, then sign again.",
  },
  UNKNOWN_INVITATION: {
    meaning: "There is no such invitation, or it is not the caller's: another application made it or another device.",
    remedy: "Check the token and who sends it.",
  },
  UNKNOWN_EVENT: { meaning: "The application has no event of this ID.", remedy: "Check the ID." },
  ENDED_BADGE: {
    meaning: "The badge's state does not allow this step: it was revoked or replaced, or has expired.",
    remedy: "Read the badge. One that has expired can be given a later end, or be revoked.",
  },
  EXPIRED_CURSOR: {
    meaning: "The cursor is from before the service's database was restored to an older state.",
    remedy: "Start again without a cursor, and replace the copy that you keep.",
  },
  INVALID_BADGEEXPIRESAT: {
    meaning: `\`badgeExpiresAt\` is not an ISO 8601 date-time with a zone, is past, or is more than ${MAX_BADGE_DAYS} days ahead.`,
    remedy: FIX_REQUEST,
  },
  INVALID_IDEMPOTENCYKEY: {
    meaning: "The `Idempotency-Key` is not 1 to 255 printable ASCII characters, or was used for another invitation.",
    remedy: "Make a new key for each new invitation, and repeat a request with its own key, udid and body.",
  },
  INVALID_STATE: { meaning: "The `state` that was asked for is none.", remedy: FIX_REQUEST },
  CLAIMED_INVITATION: {
    meaning: "A user device has claimed the invitation: another one than this, where a token is presented.",
    remedy: `An invitation is for one user device, and a claim stands. ${ASK_NEW_INVITATION}`,
  },
  EXPIRED_INVITATION: { meaning: "The invitation's time is over.", remedy: ASK_NEW_INVITATION },
  REVOKED_INVITATION: { meaning: "The application has revoked the invitation.", remedy: ASK_NEW_INVITATION },
  PAYLOAD_TOO_LARGE: {
    meaning: `The body is larger than ${MAX_BODY_BYTES / 1024} KiB.`,
    remedy: "Send less: no request needs that much.",
  },
  UNDEFINED_APPLICATIONID: { meaning: "The `applicationid` header is missing or blank.", remedy: FIX_REQUEST },
  UNDEFINED_UDID: { meaning: "The `udid` header is missing or blank.", remedy: FIX_REQUEST },
  UNDEFINED_USERID: { meaning: "`userId` is missing, null or blank.", remedy: FIX_REQUEST },
  UNDEFINED_BASE64: { meaning: "`base64` is missing, null or blank.", remedy: FIX_REQUEST },
  UNDEFINED_EXPIRESAT: { meaning: "`expiresAt` is missing, null or blank.", remedy: FIX_REQUEST },
  INVALID_UDID: {
    meaning: `The \`udid\` header is not 1 to ${MAX_UDID_CHARACTERS} printable ASCII characters.`,
    remedy: FIX_REQUEST,
  },
  INVALID_USERID: {
    meaning: `\`userId\` is not text of 1 to ${MAX_USER_ID_CHARACTERS} characters, has a control character, or is \`.\` or \`..\`, which a path cannot name.`,
    remedy: FIX_REQUEST,
  },
  INVALID_METADATA: {
    meaning: `\`metadata\` is not an object, or one of its four fields is not text of at most ${MAX_METADATA_CHARACTERS} characters, none of them a control character.`,
    remedy: "Correct it or leave it out: a badge needs no metadata.",
  },
  INVALID_BASE64: {
    meaning: `\`base64\` is not standard base64 with padding (unused bits are zero), or more than ${MAX_CLIENT_SIGNATURE_BYTES} bytes when decoded.`,
    remedy: "Encode with the standard alphabet (`+`, `/`, `=`), not the one for URLs.",
  },
  INVALID_EXPIRESAT: {
    meaning: `\`expiresAt\` is not ISO 8601 with a zone, longer than ${MAX_DATE_TIME_CHARACTERS} characters, not in the future, or more than ${MAX_INVITATION_DAYS} days ahead.`,
    remedy: "Send a time such as `2027-01-22T18:00:00Z`.",
  },
  INVALID_INVITATIONTOKEN: { meaning: "`invitationToken` is not text.", remedy: FIX_REQUEST },
  INVALID_PER_PAGE: { meaning: "`per_page` is not a positive integer.", remedy: FIX_REQUEST },
  INVALID_CURSOR: {
    meaning: "`cursor` is not one that this service made.",
    remedy: "Send the last `pagination-cursor` unchanged, or start again without one.",
  },
  RATE_LIMITED: {
    meaning: `Too many calls: over ${DEVICE_CALLS_PER_MINUTE} a minute by one device, over ${CLIENT_IP_CALLS_PER_MINUTE.toLocaleString("en")} by the devices of one address, or over ${REFUSED_CALLS_PER_MINUTE} from one address that were refused for their credentials.`,
    remedy: "Wait for as long as `Retry-After` says, then send the same request.",
  },
  INTERNAL_ERROR: {
    meaning: "The service failed.",
    remedy: "Send the same request again, a few times with growing waits. Then report the `X-Request-Id`.",
  },
  NUMBERS_EXHAUSTED: {
    meaning: "Every number of the application's range is in use.",
    remedy: "Tell the service's administrator, who can extend the range. Retrying helps once an invitation ends.",
  },
  UNAVAILABLE: {
    meaning:
      "A part of the platform is overloaded or out of reach, or other calls kept changing what this one needs. Nothing stays half done.",
    remedy: `Wait for as long as \`Retry-After\` says (${UNAVAILABLE_RETRY_SECONDS} s), then send the same request. \`POST /v1/invitation\` is the exception: see there.`,
  },
};
