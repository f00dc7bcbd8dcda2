/** What to do about a code, for the person who reads the message of an error. Behaviour never depends on it. */
const REMEDIES = new Map<string, string>(
  Object.entries({
    INVALID_JSON: "the body is not a JSON object",
    INVALID_APPLICATIONID:
      "use the application ID that `application create` printed; `application enable` ends a disablement",
    INVALID_CREDENTIALS: "use the application ID together with one of its live secrets (`secret list`)",
    INVALID_PROOF:
      "the badge needs a proof by its key: pass the proofKey that it is bound to, or have the server rebind it",
    USE_DPOP_NONCE: "make a proof with the nonce of the response's DPoP-Nonce header, and send the request again",
    INVALID_USERTOKEN: "send a current token of the application's identity provider for exactly this user",
    SUSPENDED_BADGE: "the application's server can resume the badge",
    REVOKED_BADGE:
      "call requestBadge: another badge may have taken its place; if that is refused, too, the application's server can invite the user",
    EXPIRED_BADGE: "the application's server can set a later end",
    EARLY_BADGE: "the badge opens doors only from its start on",
    BLOCKED_USER: "the application's server can unblock the user",
    WRONG_USER: "the invitation is for another user: log in as that one",
    READ_ONLY: "this secret may not do that: use one with another role",
    DOOR_ONLY: "a door's secret may only wait for changes: use the application's secret",
    NOT_FOUND: "no such path: is baseUrl right?",
    UNKNOWN_APPLICATION: "no application has this ID",
    UNKNOWN_BADGE: "request a badge first, and name a badge of this device or application",
    UNKNOWN_INVITATION:
      "no invitation of this application has this token or number; a revoked one is found by its token",
    UNKNOWN_EVENT: "no event of this application has this ID; events are deleted after a time",
    UNKNOWN_STATUSLIST:
      "turn status lists on (`application update ID --status-list`), or use the number of one that exists",
    METHOD_NOT_ALLOWED: "the path takes the methods of the response's Allow header",
    CLAIMED_INVITATION: "somebody else has claimed it: make another invitation",
    TOO_MANY_BADGES: "the user has 10,000 badges that have not ended: revoke some of them",
    ENDED_BADGE: "this badge cannot be changed any more; an invitation gives the user device another one",
    EXPIRED_INVITATION: "make another invitation",
    REVOKED_INVITATION: "make another invitation",
    EXPIRED_CURSOR: "start again without a cursor, and delete the badges that this walk does not return",
    CHANGED_BADGE: "somebody changed the badge meanwhile: read it again, then decide",
    PAYLOAD_TOO_LARGE: "send a smaller body",
    UNDEFINED_APPLICATIONID: "pass the applicationId",
    UNDEFINED_UDID: "pass a udid that is not blank",
    UNDEFINED_USERID: "pass a userId that is not blank",
    UNDEFINED_BASE64: "pass the client signature",
    UNDEFINED_EXPIRESAT: "pass expiresAt",
    INVALID_UDID: "a udid has 1 to 255 printable ASCII characters",
    INVALID_USERID: "a userId has 1 to 255 characters, no control characters, and is not . or ..",
    INVALID_METADATA: "metadata is an object of texts of at most 256 characters",
    INVALID_BASE64: "pass standard base64 with padding, of at most 4,096 bytes",
    INVALID_EXPIRESAT: "pass ISO 8601 with a zone; an invitation ends in the future, at most 365 days ahead",
    INVALID_BADGEEXPIRESAT: "pass ISO 8601 with a zone, in the future, at most 3,650 days ahead",
    INVALID_STARTSAT: "pass ISO 8601 with a zone, before the badge's end",
    INVALID_IDEMPOTENCYKEY:
      "use one key for one invitation, with the same udid and body; 1 to 255 printable ASCII characters",
    INVALID_STATE: "use a state of the reference",
    INVALID_NAME: "a name has 1 to 100 characters",
    INVALID_INVITATIONS: "pass 1 to 100 invitations",
    INVALID_ACTOR: "an actor has 1 to 100 characters, percent-encoded",
    INVALID_INVITATIONTOKEN: "pass the invitation's id as a text",
    INVALID_PER_PAGE: "perPage is a whole number of at least 1",
    INVALID_CURSOR: "pass a cursor as the service sent it",
    RATE_LIMITED: "call again after retryAfterSeconds, and less often",
    INTERNAL_ERROR: "a fault of the service: report it with the request ID",
    NOT_IMPLEMENTED: "the service does not do this",
    NUMBERS_EXHAUSTED:
      "the application's range is used up: an administrator can extend it (`application update ID --last N`)",
    UNAVAILABLE: "call again after retryAfterSeconds, it is safe",
  }),
);

/** @param code null: the response does not come from the service */
export function remedyFor(code: string | null): string {
  if (code === null) return "is baseUrl right? A proxy or a log-in page may have responded";
  return REMEDIES.get(code) ?? "this client does not know the code: update it, or see /docs of the service";
}
