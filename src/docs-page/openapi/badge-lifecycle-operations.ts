import {
  EXAMPLE_BADGE,
  EXAMPLE_KEY_THUMBPRINT,
  EXAMPLE_METADATA,
  EXAMPLE_OTHER_BADGE,
} from "../../shared/openapi-examples.ts";
import { userId } from "../../shared/requests.ts";
import {
  ACTOR_PARAMETER,
  BADGE_ID,
  BY_SERVER,
  credentialParameters,
  IF_MATCH_PARAMETER,
  READ_AS_JSON,
  reasonBody,
} from "./components.ts";
import { jsonSchema, schemaRef } from "./json-schemas.ts";
import { PAGINATION_CURSOR, pageParameters } from "./list-operations.ts";
import { commonHeaders, headerRef, json, serverErrors } from "./parts.ts";
import type { Json, Operation, Parameter, ResponseObject } from "./types.ts";

/** Routes by which an application's server follows and ends badges. */

const SERVER_ROUTE = { anyOrigin: false };

const ISSUED = { issuedAt: "2027-01-15T08:00:00.500Z", changedAt: "2027-01-15T08:00:00.500Z" };
const ACTIVE = { id: EXAMPLE_BADGE, userId: "alice", state: "active", metadata: EXAMPLE_METADATA, ...ISSUED };
const SUSPENDED = { ...ACTIVE, state: "suspended" };
const REVOKED = { ...ACTIVE, state: "revoked" };
const BOUND = { ...ACTIVE, keyThumbprint: EXAMPLE_KEY_THUMBPRINT };
const ENDING = { ...ACTIVE, expiresAt: "2027-01-22T23:00:00.000Z" };
const VISIT = { ...ENDING, name: "Ann Lee", startsAt: "2027-01-22T07:00:00.000Z" };

const USER_ID: Parameter = {
  name: "id",
  in: "path",
  description: "The application's user ID, percent-encoded.",
  required: true,
  schema: { type: "string", minLength: 1 },
  example: "alice",
};

/** The ID of a user to block, which must be one that a badge could have. */
const BLOCKED_USER_ID: Parameter = { ...USER_ID, schema: jsonSchema(userId) };

function badgeResponse(examples: Record<string, Json>): ResponseObject {
  return {
    description: "The badge as it is now.",
    headers: { ...commonHeaders(SERVER_ROUTE), ETag: headerRef("BadgeTag") },
    content: json(schemaRef("BadgeView"), examples),
  };
}

export const getBadge = (): Operation => ({
  operationId: "getBadge",
  tags: ["Badges"],
  summary: "Read a badge",
  description: "A badge of the application in any state. A number that is free or only reserved is no badge.",
  security: BY_SERVER,
  parameters: [...credentialParameters(BY_SERVER), BADGE_ID],
  responses: {
    "200": badgeResponse({ "An active badge": ACTIVE, "A revoked badge": REVOKED }),
    ...serverErrors("UNKNOWN_BADGE"),
  },
});

export const setBadgeTimes = (): Operation => ({
  operationId: "setBadgeTimes",
  tags: ["Badges"],
  summary: "Set when a badge starts and ends",
  description:
    "From its end on the badge signs nothing, without any further call. A past time ends it now. An expired badge that gets a later end, or none, is active or suspended again, as it was before. Before its start the badge signs nothing either: the device gets 403 `EARLY_BADGE`. A revoked or replaced badge gets 409 `ENDED_BADGE`. A body with neither time gets 422 `UNDEFINED_EXPIRESAT`.",
  security: BY_SERVER,
  parameters: [...credentialParameters(BY_SERVER), BADGE_ID, ACTOR_PARAMETER, IF_MATCH_PARAMETER],
  requestBody: {
    description: `The times. ${READ_AS_JSON}`,
    required: true,
    content: json(schemaRef("BadgeTimesRequest"), {
      "A visit that is over in the evening": { expiresAt: "2027-01-23T00:00:00+01:00" },
      "A visit of one day": {
        startsAt: "2027-01-22T08:00:00+01:00",
        expiresAt: "2027-01-22T18:00:00+01:00",
        reason: "Comes a day later",
      },
      "No end": { expiresAt: null },
    }),
  },
  responses: {
    "200": badgeResponse({ "A badge with an end": ENDING, "A visitor's badge": VISIT }),
    ...serverErrors(
      "READ_ONLY",
      "INVALID_JSON",
      "PAYLOAD_TOO_LARGE",
      "UNDEFINED_EXPIRESAT",
      "INVALID_EXPIRESAT",
      "INVALID_STARTSAT",
      "UNKNOWN_BADGE",
      "CHANGED_BADGE",
      "ENDED_BADGE",
    ),
  },
});

const CHANGES_NOTHING = "A call that changes nothing gets the same response and sends no event.";

const step = (operationId: string, summary: string, description: string, badge: Json): Operation => ({
  operationId,
  tags: ["Badges"],
  summary,
  description,
  security: BY_SERVER,
  parameters: [...credentialParameters(BY_SERVER), BADGE_ID, ACTOR_PARAMETER, IF_MATCH_PARAMETER],
  requestBody: reasonBody("Lost his phone"),
  responses: {
    "200": badgeResponse({ "The badge afterwards": badge }),
    ...serverErrors("READ_ONLY", "INVALID_JSON", "UNKNOWN_BADGE", "CHANGED_BADGE", "ENDED_BADGE", "PAYLOAD_TOO_LARGE"),
  },
});

export const suspendBadge = (): Operation =>
  step("suspendBadge", "Suspend a badge", `The badge opens no door until it is resumed. ${CHANGES_NOTHING}`, SUSPENDED);

export const resumeBadge = (): Operation =>
  step("resumeBadge", "Resume a badge", `A suspended badge is active again. ${CHANGES_NOTHING}`, ACTIVE);

export const revokeBadge = (): Operation =>
  step(
    "revokeBadge",
    "Revoke a badge",
    `Final: logging in does not bring the badge back. An invitation that was created with the secret gives the user device another one. ${CHANGES_NOTHING}`,
    REVOKED,
  );

export const rebindBadge = (): Operation =>
  step(
    "rebindBadge",
    "Let a badge be bound to another key",
    "For 24 hours, the first `POST /v1/badge` of the badge's user device with a proof by another key binds the badge to that key. From then on only that key is accepted; until then everything works as before. An unbound badge gets its first key in the same way. Do not use this for a lost phone: anyone who knows its `udid` and user ID could be first. Suspend or revoke that badge instead.",
    BOUND,
  );

export const getUser = (): Operation => ({
  operationId: "getUser",
  tags: ["Badges"],
  summary: "Read whether a user is blocked",
  description: "Any user ID: the service knows users only by their badges and blocks.",
  security: BY_SERVER,
  parameters: [...credentialParameters(BY_SERVER), USER_ID],
  responses: {
    "200": {
      description: "The user.",
      headers: commonHeaders(SERVER_ROUTE),
      content: json(schemaRef("User"), { "A blocked user": { userId: "alice", blocked: true } }),
    },
    ...serverErrors(),
  },
});

const USER_ERRORS = serverErrors("READ_ONLY", "INVALID_JSON", "INVALID_USERID", "PAYLOAD_TOO_LARGE");

const blocking = (operationId: string, summary: string, description: string, user: Json): Operation => ({
  operationId,
  tags: ["Badges"],
  summary,
  description,
  security: BY_SERVER,
  parameters: [...credentialParameters(BY_SERVER), BLOCKED_USER_ID, ACTOR_PARAMETER],
  requestBody: reasonBody("Lost his phone"),
  responses: {
    "200": {
      description: "The user afterwards.",
      headers: commonHeaders(SERVER_ROUTE),
      content: json(schemaRef("BlockedUser"), { "The user": user }),
    },
    ...USER_ERRORS,
  },
});

export const eraseUser = (): Operation => ({
  operationId: "eraseUser",
  tags: ["Badges"],
  summary: "Erase a person",
  description:
    "Revokes the user's badges. Then it replaces the user ID everywhere with a random one, and deletes metadata and names, also in the payloads of the badges' events. The numbers stay taken. The erasure appears in changes and in the history, without the `reason`, and cannot be undone. The platform's backups have the data for up to 61 more days. A repeated call erases nothing more: `erased` is 0.",
  security: BY_SERVER,
  parameters: [...credentialParameters(BY_SERVER), BLOCKED_USER_ID, ACTOR_PARAMETER],
  requestBody: reasonBody("Lost his phone"),
  responses: {
    "200": {
      description: "The user is erased.",
      headers: commonHeaders(SERVER_ROUTE),
      content: json(schemaRef("ErasedUser"), {
        "A user with two badges": { userId: "erased:3f9c2d51a07b4e68", erased: 2 },
      }),
    },
    ...USER_ERRORS,
  },
});

export const listBlockedUsers = (): Operation => ({
  operationId: "listBlockedUsers",
  tags: ["Badges"],
  summary: "List the blocked users",
  description:
    "In the order in which they were blocked. The service knows other users only by their badges, so it lists none.",
  security: BY_SERVER,
  parameters: [
    ...credentialParameters(BY_SERVER),
    {
      name: "state",
      in: "query",
      description: "Which users.",
      required: true,
      schema: { type: "string", enum: ["blocked"] },
      example: "blocked",
    },
    ...pageParameters(),
  ],
  responses: {
    "200": {
      description: "A page of blocked users.",
      headers: { ...commonHeaders(SERVER_ROUTE), "pagination-cursor": PAGINATION_CURSOR },
      content: json(schemaRef("BlockedUserPage"), {
        "One user": { users: [{ userId: "alice", blocked: true, blockedAt: "2027-01-15T08:00:00.500Z" }] },
      }),
    },
    ...serverErrors("INVALID_STATE", "INVALID_PER_PAGE", "INVALID_CURSOR"),
  },
});

export const blockUser = (): Operation =>
  blocking(
    "blockUser",
    "Block a user",
    "Refuses the user new badges and revokes every badge that is active, suspended or expired; also a user whom nobody has seen yet. `revoked` has the badges of this call, 10,000 at most: a repeated call revokes the rest.",
    { userId: "alice", blocked: true, revoked: [EXAMPLE_BADGE] },
  );

export const unblockUser = (): Operation =>
  blocking("unblockUser", "Unblock a user", "New badges are possible again; revoked ones stay revoked.", {
    userId: "alice",
    blocked: false,
    revoked: [],
  });

export const listChanges = (): Operation => ({
  operationId: "listChanges",
  tags: ["Badges"],
  summary: "Follow all changes of badges",
  description: `What a server polls, or reads after an outage, to keep a mirror of its badges. Each badge that was ever issued appears once, with its present state, in the order of its last change: issue, state, \`expiresAt\`, metadata, key.

1. Call without a cursor. Store each item over the one with the same \`id\`, and store the \`pagination-cursor\` header in the same transaction.
2. While \`more\` is true, call again with that cursor. When it is false, the mirror is complete.
3. Come back with the last cursor at any later time, such as every minute or when a webhook arrives: what has changed since, and nothing else. The header is always there, also on an empty page.

No change is skipped or repeated, however many requests write at that moment. An expiry shows within a minute. After 410 \`EXPIRED_CURSOR\` (the service has lost changes or numbers) start again without a cursor, and delete the badges that this walk does not return.`,
  security: BY_SERVER,
  parameters: [...credentialParameters(BY_SERVER), ...pageParameters()],
  responses: {
    "200": {
      description: "A page of changes.",
      headers: {
        ...commonHeaders(SERVER_ROUTE),
        "pagination-cursor": { ...PAGINATION_CURSOR, description: "Where the next page starts. Always present." },
      },
      content: json(schemaRef("ChangePage"), {
        "Two badges, of more": {
          changes: [
            { ...SUSPENDED, change: 42, changedAt: "2027-01-15T08:00:00.500Z" },
            {
              id: EXAMPLE_OTHER_BADGE,
              userId: "bob",
              state: "expired",
              expiresAt: "2027-01-15T08:30:00.000Z",
              issuedAt: "2027-01-14T08:30:00.000Z",
              change: 45,
              changedAt: "2027-01-15T08:30:20.125Z",
            },
          ],
          more: true,
        },
        "Nothing new": { changes: [], more: false },
      }),
    },
    ...serverErrors("INVALID_PER_PAGE", "INVALID_CURSOR", "EXPIRED_CURSOR"),
  },
});
