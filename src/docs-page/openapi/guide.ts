import { type ErrorCode, PUBLIC_ERRORS } from "../../shared/error-table.ts";
import { MAX_PROOF_CHARACTERS } from "../../shared/limits/key-limits.ts";
import {
  CLIENT_IP_CALLS_PER_MINUTE,
  DEFAULT_NEW_BADGES_PER_HOUR,
  DEFAULT_PER_PAGE,
  DEVICE_CALLS_PER_MINUTE,
  MAX_BADGE_DAYS,
  MAX_BADGE_NUMBER,
  MAX_BODY_BYTES,
  MAX_CASED_LETTERS,
  MAX_CLIENT_SIGNATURE_BYTES,
  MAX_DATE_TIME_CHARACTERS,
  MAX_IDEMPOTENCY_KEY_CHARACTERS,
  MAX_INVITATION_DAYS,
  MAX_METADATA_BYTES,
  MAX_METADATA_CHARACTERS,
  MAX_PER_PAGE,
  MAX_UDID_CHARACTERS,
  MAX_USER_ID_BYTES,
  MAX_USER_ID_CHARACTERS,
  MAX_YEAR,
  MIN_SEARCH_CHARACTERS,
  MIN_YEAR,
  REFUSED_CALLS_PER_MINUTE,
} from "../../shared/limits/request-limits.ts";
import { MEANINGS } from "./meanings.ts";
import { describeError } from "./parts.ts";
import { PROOF_GUIDE } from "./proof-guide.ts";
import { USER_GUIDE } from "./user-guide.ts";

/** What contract section 16 promises. The service itself is a little stricter, because clocks differ. */
const COPY_PROMISE_SECONDS = 90;

/** The introduction of the reference, in Markdown. */
export function guide(): string {
  return [START, USER_GUIDE, PROOF_GUIDE, NEARBY, errors(), LIMITS, RETRYING, VERSIONING, decisions()].join("\n\n");
}

const START = `The service gives every user device a **badge number** that is unique across all buildings, and signatures that door controllers check offline. Application servers invite visitors, suspend and revoke badges, keep a mirror of them, and receive a webhook for every new badge.

An administrator issues an **application ID** (public, part of the installed application) and an **application secret** (for servers only), and sets the webhook URL. There is no sign-up. A disabled application, a retired secret and other changes of settings take effect within half a minute.

This reference is made from an OpenAPI 3.1 document: [/openapi.json](/openapi.json), for generators of clients, mocks and tests.

# Getting started

**A device, after its user has logged in**

1. \`POST /v1/badge\` with \`applicationid\`, \`udid\` and \`userId\`: the response contains the badge number.
2. Sign as the building requires, and send the result to \`POST /v1/badge/sign\`: the response contains the signature that doors check. Store it securely.

**An application's server, for a visitor**

1. \`POST /v1/invitation\`: the response contains a reserved badge number and the invitation token (\`id\`).
2. Register the number with the access control of the building, and pass the token to the visitor's application.
3. The device sends it as \`invitationToken\` to \`POST /v1/badge\` and gets that number. A \`badge:created\` webhook follows.

**An application's server, over the life of a badge**

1. \`GET /v1/changes\`, from the beginning and then with the last cursor: a mirror of all badges that misses nothing.
2. \`PATCH /v1/badges/{id}/suspend\` for a phone that is lost, \`…/resume\` when it is found, \`…/revoke\` when it is not. \`PATCH /v1/badges/{id}\` sets the day on which a badge ends.
3. \`PATCH /v1/users/{id}/block\` for somebody who leaves: all badges of the user are revoked, and there are no new ones.

Devices call with \`applicationid\` and \`udid\`, people with \`applicationid\` and a user token, servers with \`applicationid\` and \`applicationsecret\`. \`POST /v1/invitation\` is a server's call that also needs a \`udid\`. Key sets, status lists, the health check and this reference need no credentials. \`GET /v1/invitation\` needs the \`applicationid\` and the token.

Requests and responses are JSON in UTF-8. An empty or blank header or field counts as missing, and so does \`null\`; an empty body counts as \`{}\`. Times are ISO 8601, in requests with a zone (RFC 3339, seconds optional). Badge numbers are strings: decimal, without leading zeros, at most ${MAX_BADGE_NUMBER}.`;

const NEARBY = `# Responses from nearby

Every 200 and 201 of \`POST /v1/badge\` and \`POST /v1/badge/sign\` has a \`bookmark\` header. Send the last one with the device's next call. The nearest replica of the database may then respond, if it is at least as new. The typed client does this automatically; to keep the bookmark over a restart, store \`bookmark\` and pass it to the new client. If a call gets no response, send the next call without a bookmark, because the lost call may have written something newer.

A replica may only accept a badge, and only if it is at most ${COPY_PROMISE_SECONDS} seconds old; every refusal, and everything that writes, is decided by the primary. So **a revocation takes effect everywhere within ${COPY_PROMISE_SECONDS} seconds**, and at once for calls without a bookmark. A bookmark is neither a secret nor a credential; a wrong one delays its sender by at most a second.`;

function errors(): string {
  const codes = Object.keys(PUBLIC_ERRORS).filter((code): code is ErrorCode => code in MEANINGS);
  const items = codes.map((code) => `* ${PUBLIC_ERRORS[code].status} ${describeError(code)}`);
  return `# Errors

Errors are \`{"error": "CODE"}\` on every path, including unknown ones. Decide by the code, and by the status if you do not know the code. Each route lists exactly the codes that it can return, including 405 for the other methods of its path; paths that do not exist return 404 \`NOT_FOUND\`.

${items.join("\n")}

Every response has an \`X-Request-Id\`: log it, and quote it when you report a problem.`;
}

const format = (number: number): string => new Intl.NumberFormat("en").format(number);

const LIMITS = `# Limits

| | |
| --- | --- |
| body | ${MAX_BODY_BYTES / 1024} KiB |
| \`udid\` | 1 to ${MAX_UDID_CHARACTERS} printable ASCII characters |
| \`userId\` | 1 to ${MAX_USER_ID_CHARACTERS} characters and at most ${MAX_USER_ID_BYTES} bytes of UTF-8, no control characters; not \`.\` or \`..\` |
| \`metadata\` | four fields, each at most ${MAX_METADATA_CHARACTERS} characters, together at most ${format(MAX_METADATA_BYTES)} bytes of UTF-8, no control characters; others are dropped |
| \`base64\` | ${format(MAX_CLIENT_SIGNATURE_BYTES)} bytes when decoded |
| \`expiresAt\` of an invitation | in the future, at most ${MAX_INVITATION_DAYS} days ahead, at most ${MAX_DATE_TIME_CHARACTERS} characters |
| \`badgeExpiresAt\` | in the future, at most ${format(MAX_BADGE_DAYS)} days ahead, at most ${MAX_DATE_TIME_CHARACTERS} characters |
| \`expiresAt\` of a badge | any time of the years ${MIN_YEAR} to ${MAX_YEAR}, or null, at most ${MAX_DATE_TIME_CHARACTERS} characters |
| \`Idempotency-Key\` | 1 to ${MAX_IDEMPOTENCY_KEY_CHARACTERS} printable ASCII characters |
| \`per_page\` | ${DEFAULT_PER_PAGE} by default, at most ${format(MAX_PER_PAGE)} |
| \`DPoP\` | ${format(MAX_PROOF_CHARACTERS)} characters |
| calls by one device of an application; with valid proofs, by each key of it | ${DEVICE_CALLS_PER_MINUTE} a minute |
| device calls of an application from one address, without a proof or for a new badge | ${format(CLIENT_IP_CALLS_PER_MINUTE)} a minute |
| the same, refused as malformed, with \`INVALID_PROOF\` or \`INVALID_USERTOKEN\`, or with a proof and an invitation token that cannot be claimed: counted apart | ${format(CLIENT_IP_CALLS_PER_MINUTE)} a minute |
| calls of one person to \`/v1/user\`; calls of \`GET /v1/invitation\` with one token | ${DEVICE_CALLS_PER_MINUTE} a minute |
| \`q\` of a list | ${MIN_SEARCH_CHARACTERS} to ${MAX_USER_ID_CHARACTERS} characters, at most ${MAX_CASED_LETTERS} different letters beyond ASCII that have upper and lower case |
| calls with wrong credentials from one address | ${REFUSED_CALLS_PER_MINUTE} a minute |

Characters are Unicode code points. An address is an IPv4 address or an IPv6 /64. Calls with a valid secret are not limited by device, and calls with a valid proof not by address, unless they would take a fresh number. An application has a limit of fresh numbers in a clock hour (${format(DEFAULT_NEW_BADGES_PER_HOUR)} unless an administrator has set another): above it, new badges and invitations without the secret get 429 \`RATE_LIMITED\`. Each of the platform's locations counts calls separately, so these limits reduce abuse but are not exact.`;

const RETRYING = `# Retrying

Every call is safe to retry: retry it when no response arrives, and after 429, 500 and 503 \`UNAVAILABLE\`, with increasing delays or as \`Retry-After\` says. The exceptions are \`POST /v1/invitation\` and \`POST /v1/invitations\`: without an \`Idempotency-Key\` each call creates new invitations. Send a key, and the same one with each retry. Nor is it safe to repeat \`rebind\` without \`If-Match\`, because the phone may have bound its new key meanwhile, or to revoke or erase an invitation by its number again, because another invitation may have the number by then. A repeated \`suspend\`, \`resume\` or \`revoke\` is a new call: if somebody has resumed the badge meanwhile, a repeated \`suspend\` suspends it again. A repeated step with \`If-Match\` may get 412 for its own change: read the badge. Do not retry after other errors without changing the request.`;

const VERSIONING = `# Versions

The version is part of the path. Within \`/v1\` changes are additive: new routes, optional request fields and headers, response fields, event kinds, error codes. **Clients ignore fields, headers and event kinds that they do not know.** Breaking changes come as \`/v2\` beside \`/v1\`. A route that will be removed is marked \`deprecated\` here, and its responses carry \`Deprecation\` (RFC 9745) and \`Sunset\` (RFC 8594) headers for at least twelve months before.`;

/** Question, decision, reason. */
const DECISIONS: readonly [string, string, string][] = [
  [
    "When is the status 200, and when 201?",
    "201 when the badge is new or its invitation was just claimed, 200 from then on, with the same number.",
    "A client that missed the first response must get the same badge, not another.",
  ],
  [
    "Which field carries the invitation token?",
    "`invitationToken`; it is the `id` of the invitation.",
    "There is one secret, so it needs one name. Until it is claimed, only its digest is stored.",
  ],
  [
    "A token whose badge was replaced later?",
    "200 with the badge that the user device has now.",
    "A retired number opens no door.",
  ],
  [
    "What must the signed value contain?",
    "Anything: the service attests which badge presented which client signature when, and does not verify it.",
    "Each building defines its own; doors verify both.",
  ],
  [
    "Two users on one device?",
    "Two badges; signing uses the one that was requested last.",
    "Logging in never moves a number to another user.",
  ],
  [
    "Which badge signs on a device with several keys?",
    "The last badge of the proved key; otherwise the last unbound badge; otherwise none. `badgeId` selects a badge.",
    "So a stranger who knows only the `udid` cannot displace a bound badge.",
  ],
  [
    "A `badgeId` that is not a badge number?",
    "404 `UNKNOWN_BADGE`, even if it is not a string; null and blank count as missing.",
    "Like any other wrong number, it is not a badge of this device.",
  ],
  [
    "Are numbers unique per application?",
    "Across the whole service.",
    "Applications share buildings, and a door reader does not know applications.",
  ],
  [
    "In which order are numbers issued?",
    "In an unpredictable order.",
    "Guessing neighbouring numbers is the classic way to clone badges.",
  ],
  [
    "Does the service know that the user has logged in?",
    "Only if an administrator has named the application's identity provider: then `POST /v1/badge` needs its token.",
    "The interface begins after the login and shows no credential for it.",
  ],
  [
    "A missing application ID?",
    "422 `UNDEFINED_APPLICATIONID` on `POST /v1/badge`, 401 elsewhere.",
    "The interface lists that code for this route alone.",
  ],
  ["Which credential is wrong?", "Server-side calls do not say.", "Strangers learn nothing about applications."],
  [
    "Does `POST /v1/invitation` need the secret?",
    "Only where the application requires it; a wrong one is always refused.",
    "The interface lists none among its headers. Require it in production.",
  ],
  [
    "Why does `POST /v1/invitation` have no CORS headers?",
    "It is a server-side call.",
    "A web page that could create invitations would let everyone who opens it reserve numbers.",
  ],
  [
    "Who can revoke an invitation?",
    "The server with its secret, or the `udid` that created it.",
    "The interface lists no headers; only these two can have created it.",
  ],
  [
    "When is a number free again?",
    "When its invitation is revoked or expires; the number of an issued badge never becomes available again.",
    "An old badge must not open a new badge's doors.",
  ],
  [
    "Does a revoked badge come back?",
    "Not by logging in. An invitation that was created with the secret gives the user device another number.",
    "A finder of the phone can log in; only the application's server knows that the phone is back.",
  ],
  [
    "When does a badge expire?",
    "At `expiresAt`: device calls and lists compare it with the clock. Changes and events report the expiry within about a minute.",
    "Nobody is let in because a job is late: the stored state follows when the alarm set for that time has run.",
  ],
  [
    "May a cursor of `GET /v1/changes` be kept for long?",
    "For ever. It expires, with 410 `EXPIRED_CURSOR`, only after the rare events that the code names: changes or numbers were lost.",
    "A server may be offline for any time, and must notice when earlier changes were lost.",
  ],
  [
    "What happens at a key rotation?",
    "A badge keeps its key; later badges get the new one.",
    "A stored `publicKey` stays valid.",
  ],
  [
    "What happens when an application is disabled?",
    "Its credentials stop working; its key set stays.",
    "Doors can still verify existing signatures.",
  ],
  [
    "Users named `.` or `..`?",
    "Refused. `.` and `..` are no user IDs. Every HTTP client resolves them in a path: `/v1/users/../badges` is `/v1/badges`, which lists the whole application. Check user IDs before you put them into a path.",
    "A URL cannot name them, percent-encoded or not (URL Standard).",
  ],
  [
    "Other methods?",
    "`HEAD` works where `GET` does. `OPTIONS` answers preflights of the routes that web pages of any origin may call: device routes, `GET /v1/invitation`, `/v1/user`, key sets and status lists. Server-side routes have no CORS.",
    "A secret must not be in a web page.",
  ],
  [
    "SHA-1 in `Signature`?",
    "Kept, together with HMAC-SHA256 by Standard Webhooks.",
    "The interface requires the first; the second also covers the time.",
  ],
];

function decisions(): string {
  const items = DECISIONS.map(([question, decision, reason]) => `**${question}** ${decision} *${reason}*`);
  return `# Decisions

Where the interface that this service implements is silent or contradicts itself, this is what the service does, and why.

${items.join("\n\n")}`;
}
