import { type ErrorCode, PUBLIC_ERRORS } from "../../shared/error-table.ts";
import {
  CLIENT_IP_CALLS_PER_MINUTE,
  DEFAULT_PER_PAGE,
  DEVICE_CALLS_PER_MINUTE,
  MAX_BADGE_NUMBER,
  MAX_BODY_BYTES,
  MAX_CLIENT_SIGNATURE_BYTES,
  MAX_DATE_TIME_CHARACTERS,
  MAX_INVITATION_DAYS,
  MAX_METADATA_CHARACTERS,
  MAX_PER_PAGE,
  MAX_UDID_CHARACTERS,
  MAX_USER_ID_CHARACTERS,
  REFUSED_CALLS_PER_MINUTE,
} from "../../shared/limits.ts";
import { MEANINGS } from "./meanings.ts";
import { describeError } from "./parts.ts";

/** The text in front of the routes, in Markdown. */
export function guide(): string {
  return [START, errors(), LIMITS, RETRYING, VERSIONING, decisions()].join("\n\n");
}

const START = `The service gives every user device a **badge number** that is unique across all buildings, and signatures that door controllers check offline. Application servers invite visitors, page their badges, and hear of every new one by webhook.

An administrator issues an **application ID** (public, part of the installed application), an **application secret** (for servers only), and sets the webhook URL. There is no sign-up.

This reference is made from an OpenAPI 3.1 document: [/openapi.json](/openapi.json), for generators of clients, mocks and tests.

# Getting started

**A device, after its user has logged in**

1. \`POST /v1/badge\` with \`applicationid\`, \`udid\` and the \`userId\`: the answer is the badge number.
2. Sign as the building demands, and \`POST /v1/badge/sign\` the result: the answer is the signature that doors check. Store it securely.

**An application's server, for a visitor**

1. \`POST /v1/invitation\`: the answer is a reserved badge number and the invitation token (\`id\`).
2. Register the number with the access control of the building, and pass the token to the visitor's application.
3. The device presents it as \`invitationToken\` to \`POST /v1/badge\` and gets that number. A \`badge:created\` webhook follows.

Devices call with \`applicationid\` and \`udid\`, servers with \`applicationid\` and \`applicationsecret\`. \`POST /v1/invitation\` is a server's call that also needs a \`udid\`. Key set, health and this reference are for anybody.

Requests and answers are JSON in UTF-8. An empty or blank header or field counts as missing, and so does \`null\`; an empty body counts as \`{}\`. Times are ISO 8601. Badge numbers are text: decimal, without leading zeros, at most ${MAX_BADGE_NUMBER}.`;

function errors(): string {
  const codes = Object.keys(PUBLIC_ERRORS).filter((code): code is ErrorCode => code in MEANINGS);
  const items = codes.map((code) => `* ${PUBLIC_ERRORS[code].status} ${describeError(code)}`);
  return `# Errors

\`{"error": "CODE"}\`, on every path, including unknown ones. Decide by the code; treat a code that you do not know by its status. Each route lists exactly the codes that it can give; 405 is for the other methods of its path, and 404 \`NOT_FOUND\` for paths that do not exist.

${items.join("\n")}

Every answer has an \`X-Request-Id\`: log it, and quote it when you report a problem.`;
}

const format = (number: number): string => new Intl.NumberFormat("en").format(number);

const LIMITS = `# Limits

| | |
| --- | --- |
| body | ${MAX_BODY_BYTES / 1024} KiB |
| \`udid\` | 1 to ${MAX_UDID_CHARACTERS} printable ASCII characters |
| \`userId\` | 1 to ${MAX_USER_ID_CHARACTERS} characters, no control characters; not \`.\` or \`..\` |
| \`metadata\` | four fields, each at most ${MAX_METADATA_CHARACTERS} characters, no control characters; others are dropped |
| \`base64\` | ${format(MAX_CLIENT_SIGNATURE_BYTES)} bytes when decoded |
| \`expiresAt\` | in the future, at most ${MAX_INVITATION_DAYS} days ahead, at most ${MAX_DATE_TIME_CHARACTERS} characters |
| \`per_page\` | ${DEFAULT_PER_PAGE} unless told, at most ${format(MAX_PER_PAGE)} |
| calls by one device of an application | ${DEVICE_CALLS_PER_MINUTE} a minute |
| device calls of an application from one address | ${format(CLIENT_IP_CALLS_PER_MINUTE)} a minute |
| calls from one address that are refused for their credentials | ${REFUSED_CALLS_PER_MINUTE} a minute |

Characters are Unicode code points. An address is an IPv4 address or an IPv6 /64. Calls with a valid secret are not limited by device. The limits of calls are counted per location of the network, so they dampen abuse and account for nothing.`;

const RETRYING = `# Repeating calls

Every call but one can be sent again without harm: send it again when no response came, and after 429, 500 and 503 \`UNAVAILABLE\`, with growing waits or as \`Retry-After\` says. The exception is \`POST /v1/invitation\`, where each call makes another invitation: after 429 nothing was reserved; after 500, 503 \`UNAVAILABLE\` or no response a number may be. The service ends an invitation whose token it could not tell by itself, within about an hour; one whose response was lost behind the service ends when it expires. Other errors stay until the request is changed.`;

const VERSIONING = `# Versions

The version is part of the path. Within \`/v1\` changes are additive: new routes, optional request fields and headers, answer fields, event kinds, error codes. **Clients ignore fields, headers and event kinds that they do not know.** What would break a client that does so comes as \`/v2\` beside \`/v1\`; a route that is to end is marked \`deprecated\` here, and its answers carry \`Deprecation\` (RFC 9745) and \`Sunset\` (RFC 8594) headers for twelve months or more before it does.`;

/** Question, decision, reason. */
const DECISIONS: readonly [string, string, string][] = [
  [
    "What separates 200 from 201?",
    "201 when the badge is new or its invitation was just claimed, 200 ever after, with the same number.",
    "A client that never saw the first answer must get the same badge, not another.",
  ],
  [
    "Which field carries the invitation token?",
    "`invitationToken`; it is the `id` of the invitation.",
    "One secret instead of two names for it. Only its digest is stored.",
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
    "Two badges; signing uses the one that was asked for last.",
    "A number never changes hands by a login.",
  ],
  [
    "Are numbers unique per application?",
    "Across the whole service.",
    "Buildings are shared, and a reader at a door knows no applications.",
  ],
  [
    "In which order are numbers issued?",
    "In one that nobody can predict.",
    "Neighbouring numbers are the classic way to clone badges.",
  ],
  [
    "A missing application ID?",
    "422 `UNDEFINED_APPLICATIONID` on `POST /v1/badge`, else 401.",
    "The interface lists that code for this route alone.",
  ],
  ["Which credential is wrong?", "Server-side calls do not tell.", "A stranger learns nothing about applications."],
  [
    "Must `POST /v1/invitation` have the secret?",
    "Only where the application requires it; a wrong one is always refused.",
    "The interface lists none among its headers. Require it in production.",
  ],
  [
    "Why has `POST /v1/invitation` no CORS?",
    "It is a server-side call.",
    "A web page that could make invitations would let everyone who opens it reserve numbers.",
  ],
  [
    "Who revokes an invitation?",
    "The server with its secret, or the `udid` that created it.",
    "The interface shows no headers; these are the two that can have made it.",
  ],
  [
    "When is a number free again?",
    "When its invitation is revoked or expires; numbers of issued or retired badges never.",
    "An old badge must not open a new badge's doors.",
  ],
  [
    "Does signing outlive a key rotation?",
    "Yes: a badge keeps its key, later badges get the newer one.",
    "A stored `publicKey` stays true.",
  ],
  [
    "What of a disabled application?",
    "Its credentials stop working; its key set stays.",
    "Doors go on checking the signatures that exist.",
  ],
  [
    "Users named `.` or `..`?",
    "Refused. `.` and `..` are no user IDs. Every HTTP client resolves them in a path: `/v1/users/../badges` is `/v1/badges`, which lists the whole application. Check user IDs before you put them into a path.",
    "A URL cannot name them, percent-encoded or not (URL Standard).",
  ],
  [
    "Other methods?",
    "`HEAD` works where `GET` does. `OPTIONS` answers preflights on device routes and the key set, which web pages of any origin may call; server-side routes have no CORS.",
    "A secret has no place in a web page.",
  ],
  [
    "SHA-1 in `Signature`?",
    "Kept, and beside it HMAC-SHA256 by Standard Webhooks.",
    "The interface demands the first; the second also covers the time.",
  ],
];

function decisions(): string {
  const items = DECISIONS.map(([question, decision, reason]) => `**${question}** ${decision} *${reason}*`);
  return `# Decisions

Where the interface that this service implements is silent or contradicts itself, this is what the service does, and why.

${items.join("\n\n")}`;
}
