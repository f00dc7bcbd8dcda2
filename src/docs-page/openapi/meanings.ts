import type { ErrorCode } from "../../shared/error-table.ts";
import { NONCE_LIFETIME_SECONDS, PROOF_WINDOW_SECONDS } from "../../shared/limits/key-limits.ts";
import { UNAVAILABLE_RETRY_SECONDS } from "../../shared/limits/platform-limits.ts";
import {
  CLIENT_IP_CALLS_PER_MINUTE,
  DEVICE_CALLS_PER_MINUTE,
  MAX_BADGE_DAYS,
  MAX_BODY_BYTES,
  MAX_CLIENT_SIGNATURE_BYTES,
  MAX_DATE_TIME_CHARACTERS,
  MAX_INVITATION_DAYS,
  MAX_INVITATIONS,
  MAX_INVITATIONS_BODY_BYTES,
  MAX_METADATA_BYTES,
  MAX_METADATA_CHARACTERS,
  MAX_NAME_CHARACTERS,
  MAX_REASON_CHARACTERS,
  MAX_UDID_CHARACTERS,
  MAX_USER_ID_BYTES,
  MAX_USER_ID_CHARACTERS,
  MAX_YEAR,
  MIN_YEAR,
  REFUSED_CALLS_PER_MINUTE,
} from "../../shared/limits/request-limits.ts";

/** What an error code means, and what to do about it. */
export interface Meaning {
  meaning: string;
  remedy: string;
}

const FIX_REQUEST = "Correct the request: sent unchanged, it fails again.";
const ASK_NEW_INVITATION = "Ask the application's server for a new invitation.";

/** The meaning of every code in the error table. */
export const MEANINGS: Record<ErrorCode, Meaning> = {
  INVALID_JSON: {
    meaning: `The body is not UTF-8 JSON, or not an object; or its \`reason\` is not a string of 1 to ${MAX_REASON_CHARACTERS} characters without control characters.`,
    remedy: FIX_REQUEST,
  },
  INVALID_APPLICATIONID: {
    meaning: "The application ID is unknown, or an administrator has disabled the application.",
    remedy: "Check the ID that was issued to you. Do not retry.",
  },
  INVALID_CREDENTIALS: {
    meaning: "The application ID and secret do not match, one of them is missing, or the application is disabled.",
    remedy:
      "Check both: the response does not reveal which one is wrong. While a secret is being changed, use the new one. Do not retry unchanged.",
  },
  INVALID_PROOF: {
    meaning:
      "The `DPoP` header is not a valid proof for exactly this request, or it is missing although the badge or the application requires one. Or the badge is bound to another key, or to none although the application requires proofs.",
    remedy:
      "Make a proof for this request with the badge's key. If the key is lost, ask the application's operator. Do not retry unchanged.",
  },
  USE_DPOP_NONCE: {
    meaning: `The proof is valid but not fresh. The service did not issue its \`nonce\` within the last ${NONCE_LIFETIME_SECONDS} s; or it has no \`nonce\`, and its \`iat\` is more than ${PROOF_WINDOW_SECONDS} s from the service's clock.`,
    remedy: "Send the request again with a new proof whose `nonce` is the response's `DPoP-Nonce`.",
  },
  INVALID_USERTOKEN: {
    meaning:
      "The application verifies its users, and `Authorization` lacks a valid token of its identity provider for this application and user. Or the token is bound to another key than the proof's. On `/v1/user` also: the application has no identity provider.",
    remedy:
      "Get a new token from the identity provider (refresh it, or let the user log in again), then send the request again. Do not retry unchanged.",
  },
  TOO_MANY_BADGES: {
    meaning: "The user has 10,000 badges that have not ended.",
    remedy: "Revoke badges that are not used any more, then send the request again.",
  },
  SUSPENDED_BADGE: {
    meaning: "The badge is suspended for now.",
    remedy: "Tell the user to ask the application's operator. It may be resumed.",
  },
  REVOKED_BADGE: {
    meaning:
      "The badge was revoked, and logging in does not bring it back; or, when it signs, another badge has taken its place.",
    remedy:
      "After a refused signature, log in: the response has the badge that took its place. If that is refused, too, tell the user to ask the application's operator: its server can invite the device again.",
  },
  EXPIRED_BADGE: {
    meaning: "The badge's end has passed.",
    remedy: "Tell the user to ask the application's operator. It may be given a later end.",
  },
  BLOCKED_USER: {
    meaning: "The application has blocked the user.",
    remedy: "Tell the user to ask the application's operator. Do not retry.",
  },
  EARLY_BADGE: {
    meaning: "The badge's start has not come yet.",
    remedy: "Tell the user from when the badge opens doors: the application's server knows its `startsAt`.",
  },
  WRONG_USER: {
    meaning: "The invitation is for another user. It was not consumed.",
    remedy: "Log in as the user who was invited, then present the token again.",
  },
  READ_ONLY: {
    meaning: "This console secret's role does not allow the call.",
    remedy: "Ask an administrator for another role. Do not retry.",
  },
  DOOR_ONLY: {
    meaning: "The secret is a door's, which may call `GET /v1/live` only.",
    remedy: "Use the application's secret, or a person's. Do not retry.",
  },
  NOT_FOUND: { meaning: "There is no such path.", remedy: "Check the path." },
  METHOD_NOT_ALLOWED: {
    meaning: "The path does not support this method.",
    remedy: "Use one of the methods in the `Allow` header.",
  },
  UNKNOWN_APPLICATION: { meaning: "No application has this ID.", remedy: "Check the application ID." },
  UNKNOWN_BADGE: {
    meaning:
      "The device has no badge of the application yet, or `badgeId` is not a badge of this device. In a server's call: the application has issued no badge with this number.",
    remedy:
      "On a device, call `POST /v1/badge` for the logged-in user, then sign again. On a server, check the number.",
  },
  UNKNOWN_INVITATION: {
    meaning: "There is no such invitation, or another application or another device created it.",
    remedy: "Check the token, and which application or device sends it.",
  },
  UNKNOWN_STATUSLIST: {
    meaning: "There is no such status list, or the application has none.",
    remedy: "Take the address from a badge signature: its `status.status_list.uri`.",
  },
  UNKNOWN_EVENT: { meaning: "The application has no event of this ID.", remedy: "Check the ID." },
  ENDED_BADGE: {
    meaning: "The badge's state does not allow this step: it was revoked or replaced, or has expired.",
    remedy: "Read the badge. One that has expired can be given a later end, or be revoked.",
  },
  CHANGED_BADGE: {
    meaning:
      "The badge has changed since the state that `If-Match` names. This call changed nothing. If you have repeated it, the change may be your own.",
    remedy: "Read the badge again, then decide whether the change is still wanted.",
  },
  EXPIRED_CURSOR: {
    meaning:
      "The cursor is from before the application's rows were republished (`reconcile --republish`), before its allocator lost its storage, or before it withdrew a number that another application had taken.",
    remedy:
      "Start again without a cursor and with an empty mirror: forget the stored `change` numbers, too, and the badges that this walk does not return.",
  },
  INVALID_BADGEEXPIRESAT: {
    meaning: `\`badgeExpiresAt\` is not an ISO 8601 date-time with a zone, is longer than ${MAX_DATE_TIME_CHARACTERS} characters, not in the future, or more than ${MAX_BADGE_DAYS.toLocaleString("en")} days ahead.`,
    remedy: FIX_REQUEST,
  },
  INVALID_IDEMPOTENCYKEY: {
    meaning:
      "The `Idempotency-Key` is not 1 to 255 printable ASCII characters, or was used with another `udid` or body, or for an invitation whose name or user ID has been erased since.",
    remedy: "Make a new key for each new invitation, and repeat a request with its own key, udid and body.",
  },
  INVALID_STATE: {
    meaning:
      "`state` is not one of the states of this list, `order` is not `newest`, or `action` is not one of the history's.",
    remedy: FIX_REQUEST,
  },
  INVALID_STARTSAT: {
    meaning: `\`startsAt\` or \`badgeStartsAt\` is not an ISO 8601 date-time with a zone, is longer than ${MAX_DATE_TIME_CHARACTERS} characters, or not before the badge's end.`,
    remedy: FIX_REQUEST,
  },
  INVALID_NAME: {
    meaning: `\`name\` is not a string of 1 to ${MAX_NAME_CHARACTERS} characters without control characters; or \`q\` of a list is shorter or longer than the limits say, or has too many different letters.`,
    remedy: FIX_REQUEST,
  },
  INVALID_INVITATIONS: {
    meaning: `\`invitations\` is not a list of 1 to ${MAX_INVITATIONS}.`,
    remedy: "Split a longer list into several calls, each with an `Idempotency-Key` of its own.",
  },
  INVALID_ACTOR: {
    meaning: `The \`actor\` header, or \`actor\` of a history, is not 1 to ${MAX_NAME_CHARACTERS} characters in percent-encoded UTF-8, or has a control character.`,
    remedy: "Encode the name, as `encodeURIComponent` does.",
  },
  CLAIMED_INVITATION: {
    meaning: "The invitation has been claimed; when a token is presented, by another user device.",
    remedy: `An invitation is for one user device, and a claim is final. ${ASK_NEW_INVITATION}`,
  },
  EXPIRED_INVITATION: { meaning: "The invitation has expired.", remedy: ASK_NEW_INVITATION },
  REVOKED_INVITATION: { meaning: "The application has revoked the invitation.", remedy: ASK_NEW_INVITATION },
  PAYLOAD_TOO_LARGE: {
    meaning: `The body is larger than ${MAX_BODY_BYTES / 1024} KiB; of \`POST /v1/invitations\`: ${MAX_INVITATIONS_BODY_BYTES / 1024} KiB.`,
    remedy: "Send a smaller body: no request needs that much.",
  },
  UNDEFINED_APPLICATIONID: { meaning: "The `applicationid` header is missing or blank.", remedy: FIX_REQUEST },
  UNDEFINED_UDID: { meaning: "The `udid` header is missing or blank.", remedy: FIX_REQUEST },
  UNDEFINED_USERID: { meaning: "`userId` is missing, null or blank.", remedy: FIX_REQUEST },
  UNDEFINED_BASE64: { meaning: "`base64` is missing, null or blank.", remedy: FIX_REQUEST },
  UNDEFINED_EXPIRESAT: {
    meaning: "`expiresAt` is missing, null or blank; of a badge: there is neither `expiresAt` nor `startsAt`.",
    remedy: FIX_REQUEST,
  },
  INVALID_UDID: {
    meaning: `The \`udid\` header is not 1 to ${MAX_UDID_CHARACTERS} printable ASCII characters.`,
    remedy: FIX_REQUEST,
  },
  INVALID_USERID: {
    meaning: `\`userId\` is not a string of 1 to ${MAX_USER_ID_CHARACTERS} characters, has more than ${MAX_USER_ID_BYTES} bytes of UTF-8, contains a control character, or is \`.\` or \`..\`, which a URL path cannot contain.`,
    remedy: FIX_REQUEST,
  },
  INVALID_METADATA: {
    meaning: `\`metadata\` is not an object, or one of its four fields is not a string of at most ${MAX_METADATA_CHARACTERS} characters without control characters, or they have more than ${MAX_METADATA_BYTES.toLocaleString("en")} bytes of UTF-8 together.`,
    remedy: "Correct it or leave it out: metadata is optional.",
  },
  INVALID_BASE64: {
    meaning: `\`base64\` is not standard base64 with padding and zero pad bits, or is more than ${MAX_CLIENT_SIGNATURE_BYTES} bytes when decoded.`,
    remedy: "Use the standard alphabet (`+`, `/`, `=`), not the URL-safe one.",
  },
  INVALID_EXPIRESAT: {
    meaning: `\`expiresAt\` is not ISO 8601 with a zone (RFC 3339, seconds optional), is longer than ${MAX_DATE_TIME_CHARACTERS} characters, or is not of the years ${MIN_YEAR} to ${MAX_YEAR}. The same applies to \`endsBefore\`, \`from\`, \`since\` and \`until\` of a list. An invitation's must also be in the future, at most ${MAX_INVITATION_DAYS} days ahead.`,
    remedy: "Send a time such as `2027-01-22T18:00:00Z`.",
  },
  INVALID_INVITATIONTOKEN: {
    meaning: "`invitationToken` is not a string, or the `invitationtoken` header is missing or blank.",
    remedy: FIX_REQUEST,
  },
  INVALID_PER_PAGE: { meaning: "`per_page` is not a positive integer.", remedy: FIX_REQUEST },
  INVALID_CURSOR: {
    meaning: "`cursor` is not a cursor of this list; of `GET /v1/live`: `have` is not a whole number from 0 on.",
    remedy:
      "Send the last `pagination-cursor` unchanged, or start again without a cursor. At a door, send the `change` of the last response, or leave `have` out.",
  },
  RATE_LIMITED: {
    meaning: `There were too many calls in a minute: over ${DEVICE_CALLS_PER_MINUTE} by one device, user or invitation token; over ${CLIENT_IP_CALLS_PER_MINUTE.toLocaleString("en")} from one address without a proof or for new badges; as many malformed ones; or over ${REFUSED_CALLS_PER_MINUTE} with wrong credentials. Or the application has used up the new badges of this clock hour. A call of \`GET /v1/live\` gets it when a newer call with the same door's secret replaces it.`,
    remedy: "Wait as long as `Retry-After` says, then send the same request again.",
  },
  INTERNAL_ERROR: {
    meaning: "The service failed.",
    remedy: "Retry a few times with increasing delays. If it still fails, report the `X-Request-Id`.",
  },
  NOT_IMPLEMENTED: {
    meaning: "`time` asks for a status list of the past. The service has only the present one.",
    remedy: "Leave `time` out.",
  },
  NUMBERS_EXHAUSTED: {
    meaning: "Every number of the application's range is in use.",
    remedy:
      "Tell the service's administrator, who can extend the range. A retry succeeds only after an invitation ends.",
  },
  UNAVAILABLE: {
    meaning:
      "A part of the platform, or the application's identity provider, is overloaded or unreachable, a key cannot be opened, or the database was restored and does not have the latest changes yet. The request took effect completely or not at all.",
    remedy: `Wait as long as \`Retry-After\` says (${UNAVAILABLE_RETRY_SECONDS} s), then send the same request again. \`POST /v1/invitation\` and \`POST /v1/invitations\` are safe to repeat only with an \`Idempotency-Key\`.`,
  },
};
