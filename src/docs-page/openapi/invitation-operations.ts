import { MAX_INVITATIONS_BODY_BYTES } from "../../shared/limits/request-limits.ts";
import { EXAMPLE_BADGE, EXAMPLE_EXPIRES_AT, EXAMPLE_TOKEN } from "../../shared/openapi-examples.ts";
import { idempotencyKey } from "../../shared/requests.ts";
import { ACTOR_PARAMETER, BY_DEVICE, BY_SERVER, credentialParameters, READ_AS_JSON, reasonBody } from "./components.ts";
import { jsonSchema, schemaRef } from "./json-schemas.ts";
import { commonHeaders, errorResponses, json, serverErrors } from "./parts.ts";
import type { Operation, Parameter } from "./types.ts";

/** Routes by which an application's server invites visitors, and a visitor's phone reads the invitation. */

const SERVER_ROUTE = { anyOrigin: false };

const ONE_HOUR_MILLISECONDS = 3_600_000;
const ONE_WEEK_MILLISECONDS = 7 * 24 * ONE_HOUR_MILLISECONDS;

/** A full hour in about a week, so that the example is valid when somebody tries it. */
function inAWeek(now: number): string {
  const hour = Math.ceil(now / ONE_HOUR_MILLISECONDS) * ONE_HOUR_MILLISECONDS;
  return new Date(hour + ONE_WEEK_MILLISECONDS).toISOString().replace(".000Z", "Z");
}

/** The application's server with a `udid`, or with the application ID alone where no secret is required. */
const BY_INVITER = [{ applicationid: [], applicationsecret: [], udid: [] }, ...BY_DEVICE];
/** The application's server, or the device that created the invitation. */
const BY_REVOKER = [...BY_SERVER, ...BY_DEVICE];

const IDEMPOTENCY_KEY: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  description:
    "1 to 255 printable ASCII characters of your choice, new for each request that is meant as another. A repeated request with the same key, udid and body gets the same invitation instead of another one, also once it has ended. Blank counts as missing.",
  required: false,
  schema: jsonSchema(idempotencyKey),
  example: "visit-4711",
};

const BY_VISITOR = [{ applicationid: [] }];

export const describeInvitation = (): Operation => ({
  operationId: "describeInvitation",
  tags: ["Invitations"],
  summary: "See what an invitation is for",
  description: `Tells the holder of the token who is expected, where and when. It consumes nothing: only \`POST /v1/badge\` claims. The page at \`/pass\` calls it, so that a visitor needs no app.

An invitation whose time has passed has the \`state\` \`expired\` at once. \`userId\` is the user whom the invitation names, not the user who claimed it.`,
  security: BY_VISITOR,
  parameters: [
    ...credentialParameters(BY_VISITOR),
    {
      name: "invitationtoken",
      in: "header",
      description: "The invitation's `id`.",
      required: true,
      schema: { type: "string", minLength: 1 },
      example: EXAMPLE_TOKEN,
    },
  ],
  responses: {
    "200": {
      description: "The invitation.",
      headers: commonHeaders({ anyOrigin: true }),
      content: json(schemaRef("DescribedInvitation"), {
        "A visit that has not been claimed yet": {
          state: "pending",
          expiresAt: EXAMPLE_EXPIRES_AT,
          badgeExpiresAt: EXAMPLE_EXPIRES_AT,
          name: "Ann Lee",
          applicationName: "Main Street 1",
        },
      }),
    },
    ...errorResponses({ anyOrigin: true }, [
      "INVALID_APPLICATIONID",
      "UNKNOWN_INVITATION",
      "INVALID_INVITATIONTOKEN",
      "RATE_LIMITED",
      "UNAVAILABLE",
    ]),
  },
});

export const createInvitation = (now: number): Operation => ({
  operationId: "createInvitation",
  tags: ["Invitations"],
  summary: "Reserve a badge number for somebody",
  description: `The application's server calls this before a visit. It registers \`badgeId\` with the access control of the building, and passes \`id\` to its application on the visitor's device, which presents it as \`invitationToken\` to \`POST /v1/badge\`.

**The invitation token is the \`id\`**: a secret with at least 128 random bits, of which the service keeps only a digest until it is claimed; then the event names it as \`invitationId\`. The first device that presents it gets the badge.

The number stays reserved until somebody claims it. When the invitation is revoked or expires first, the number is free again, after the application's reuse delay if it has one; expiry needs no call. A reservation is not a badge: no \`badge:created\`, and not in the lists.

With \`badgeExpiresAt\` the badge that is claimed has an end: from then on it signs nothing. The invitation ends with it, if that is earlier than \`expiresAt\`.

With \`badgeStartsAt\` it signs nothing before. With \`userId\` only a device that names this user can claim it; others get 403 \`WRONG_USER\`, and nothing is consumed. \`name\` is for people: lists of invitations and badges have it.

An invitation that was created with the secret can be claimed by a user device whose badge was revoked; it gets a new badge, and the old one stays revoked. Without the secret that claim gets 403 \`REVOKED_BADGE\`.

### Repeat it safely

**Send an \`Idempotency-Key\`**, and repeat the request whenever no response arrives. The same request gets the same 201 as long as the invitation is kept, even after it has ended. The key belongs to its caller: the application's server, a person with a console secret, or one device. With another \`udid\` or body it gets 422 \`INVALID_IDEMPOTENCYKEY\`. So does a body with a name or user ID once the invitation or its user was erased. An invitation is deleted a year after it or its badge ended, unless an administrator has set another period. If its key is used after that, it reserves another number under the same token.

**Without a key each call creates another invitation.** After 503 \`UNAVAILABLE\`, 500 or no response at all, a number may be reserved although nobody has the token. The number stays reserved until \`expiresAt\`: choose it no later than needed.

### Who calls

A server-side call: there are no CORS headers, so a web page cannot make it. \`udid\` is required to identify who creates the invitation; a server that is not a device sends any name of its choice. Calls with a valid secret are not rate-limited.

Without a secret the call works only where the application does not require one. Application IDs are public, so anybody can then reserve numbers: in production, have the administrator require the secret. A wrong secret is 401 in any case, and a missing application ID is 401 here.`,
  security: BY_INVITER,
  parameters: [...credentialParameters(BY_INVITER), IDEMPOTENCY_KEY, ACTOR_PARAMETER],
  requestBody: {
    description: `Until when. ${READ_AS_JSON}`,
    required: true,
    content: json(schemaRef("InvitationRequest"), {
      "For a week": { expiresAt: inAWeek(now) },
      "For a visit that ends": { expiresAt: inAWeek(now), badgeExpiresAt: inAWeek(now) },
      "For a visitor": { expiresAt: inAWeek(now), badgeExpiresAt: inAWeek(now), name: "Ann Lee", userId: "alice" },
    }),
  },
  responses: {
    "201": {
      description: "The invitation and the number reserved for it.",
      headers: commonHeaders(SERVER_ROUTE),
      content: json(schemaRef("Invitation"), {
        "An invitation": { id: EXAMPLE_TOKEN, badgeId: EXAMPLE_BADGE, expiresAt: inAWeek(now) },
        "An invitation to a visit that ends": {
          id: EXAMPLE_TOKEN,
          badgeId: EXAMPLE_BADGE,
          expiresAt: inAWeek(now),
          badgeExpiresAt: inAWeek(now),
        },
      }),
    },
    ...errorResponses(SERVER_ROUTE, [
      "INVALID_JSON",
      "INVALID_APPLICATIONID",
      "INVALID_CREDENTIALS",
      "PAYLOAD_TOO_LARGE",
      "UNDEFINED_UDID",
      "UNDEFINED_EXPIRESAT",
      "INVALID_UDID",
      "INVALID_EXPIRESAT",
      "INVALID_BADGEEXPIRESAT",
      "INVALID_STARTSAT",
      "INVALID_NAME",
      "INVALID_USERID",
      "INVALID_ACTOR",
      "INVALID_IDEMPOTENCYKEY",
      "READ_ONLY",
      "DOOR_ONLY",
      "RATE_LIMITED",
      "NUMBERS_EXHAUSTED",
      "UNAVAILABLE",
    ]),
  },
});

/** The application's server with a `udid`. */
const BY_SERVER_WITH_UDID = [{ applicationid: [], applicationsecret: [], udid: [] }];

export const createInvitations = (now: number): Operation => ({
  operationId: "createInvitations",
  tags: ["Invitations"],
  summary: "Invite up to a hundred visitors at once",
  description: `Each invitation is created or refused separately, as \`POST /v1/invitation\` would do it. The response lists them in the order of the request: an invitation, or its \`error\`. So read every item of a 200. The secret is required.

One \`Idempotency-Key\` and one \`udid\` count for all: the repeated request gets the same invitations.`,
  security: BY_SERVER_WITH_UDID,
  parameters: [...credentialParameters(BY_SERVER_WITH_UDID), IDEMPOTENCY_KEY, ACTOR_PARAMETER],
  requestBody: {
    description: `At most ${MAX_INVITATIONS_BODY_BYTES / 1024} KiB. ${READ_AS_JSON}`,
    required: true,
    content: json(schemaRef("InvitationsRequest"), {
      "Two visitors": {
        invitations: [
          { expiresAt: inAWeek(now), name: "Ann Lee" },
          { expiresAt: inAWeek(now), name: "Bob Ray" },
        ],
      },
    }),
  },
  responses: {
    "200": {
      description: "One for each that was sent, in the same order.",
      headers: commonHeaders(SERVER_ROUTE),
      content: json(schemaRef("Invitations"), {
        "One that was made, and one that was refused": {
          invitations: [
            { id: EXAMPLE_TOKEN, badgeId: EXAMPLE_BADGE, expiresAt: inAWeek(now), name: "Ann Lee" },
            { error: "INVALID_EXPIRESAT" },
          ],
        },
      }),
    },
    ...serverErrors(
      "READ_ONLY",
      "INVALID_JSON",
      "PAYLOAD_TOO_LARGE",
      "UNDEFINED_UDID",
      "INVALID_UDID",
      "INVALID_INVITATIONS",
      "INVALID_IDEMPOTENCYKEY",
    ),
  },
});

export const revokeInvitation = (): Operation => ({
  operationId: "revokeInvitation",
  tags: ["Invitations"],
  summary: "Revoke an invitation",
  description: `Ends a pending invitation; its number becomes available again. The server's body may have a \`reason\`; none is needed.

With the secret, the application's server can revoke any invitation of the application. Where no secret is required, the \`udid\` that created the invitation can revoke it, too; any other \`udid\` gets 404 \`UNKNOWN_INVITATION\`. With neither secret nor \`udid\` the response is 401 \`INVALID_CREDENTIALS\`.

Instead of the token, the server may send the badge number that the invitation reserves; the response then has this number as \`id\`. This works only while the number is reserved. If the invitation was claimed, the response is 409; if it has expired or was revoked, 404 \`UNKNOWN_INVITATION\`. A token in a URL may end up in logs on the way; the number is no secret.

Revoking again by the token gives the same response, so repeat the call when none came. A claimed invitation cannot be revoked: its badge is issued, so revoke the badge (\`PATCH /v1/badges/{id}/revoke\`). Of a claim and a revocation at the same moment exactly one happens.`,
  security: BY_REVOKER,
  parameters: [
    ...credentialParameters(BY_REVOKER),
    {
      name: "id",
      in: "path",
      description: "The invitation's `id`; with the secret also the badge number that it reserves.",
      required: true,
      schema: { type: "string", minLength: 1 },
      example: EXAMPLE_TOKEN,
    },
    ACTOR_PARAMETER,
  ],
  requestBody: reasonBody("The visit was cancelled"),
  responses: {
    "200": {
      description: "The invitation is revoked, by this call or an earlier one.",
      headers: commonHeaders(SERVER_ROUTE),
      content: json(schemaRef("RevokedInvitation"), {
        "A revoked invitation": {
          id: EXAMPLE_TOKEN,
          badgeId: EXAMPLE_BADGE,
          expiresAt: EXAMPLE_EXPIRES_AT,
          revokedAt: "2027-01-16T09:30:00.000Z",
        },
      }),
    },
    ...errorResponses(SERVER_ROUTE, [
      "INVALID_APPLICATIONID",
      "INVALID_CREDENTIALS",
      "INVALID_ACTOR",
      "READ_ONLY",
      "DOOR_ONLY",
      "UNKNOWN_INVITATION",
      "CLAIMED_INVITATION",
      "EXPIRED_INVITATION",
      "PAYLOAD_TOO_LARGE",
      "RATE_LIMITED",
      "UNAVAILABLE",
    ]),
  },
});

export const eraseInvitation = (): Operation => ({
  operationId: "eraseInvitation",
  tags: ["Invitations"],
  summary: "Erase whom an invitation names",
  description: `Deletes the name and the user ID of an invitation, and revokes it if it is pending. A badge that was claimed from it stays: erase its user with \`PATCH /v1/users/{id}/erase\`.

A repeated call by the token gets the same response.`,
  security: BY_SERVER,
  parameters: [
    ...credentialParameters(BY_SERVER),
    {
      name: "id",
      in: "path",
      description: "The invitation's `id`, or the badge number while it is reserved.",
      required: true,
      schema: { type: "string", minLength: 1 },
      example: EXAMPLE_TOKEN,
    },
    ACTOR_PARAMETER,
  ],
  requestBody: reasonBody("The visitor asked for it"),
  responses: {
    "200": {
      description:
        "The invitation's name and user ID are deleted. A claimed one still shows its badge's user, and the history still names both: erase that user, too.",
      headers: commonHeaders(SERVER_ROUTE),
      content: json(schemaRef("ErasedInvitation"), { "An erased invitation": { badgeId: EXAMPLE_BADGE } }),
    },
    ...errorResponses(SERVER_ROUTE, [
      "INVALID_JSON",
      "INVALID_CREDENTIALS",
      "INVALID_ACTOR",
      "READ_ONLY",
      "DOOR_ONLY",
      "UNKNOWN_INVITATION",
      "PAYLOAD_TOO_LARGE",
      "RATE_LIMITED",
      "UNAVAILABLE",
    ]),
  },
});
