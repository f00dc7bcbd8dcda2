import { INVITATION_STATES } from "../../shared/badge-lifecycle/states.ts";
import {
  EXAMPLE_APPLICATION_ID,
  EXAMPLE_BADGE,
  EXAMPLE_OTHER_BADGE,
  EXAMPLE_REQUEST_ID,
} from "../../shared/openapi-examples.ts";
import { historyPageQuery, invitationPageQuery } from "../../shared/requests.ts";
import { EVENT_STATES } from "../../shared/schema.ts";
import { ACTOR_PARAMETER, BY_SERVER, credentialParameters } from "./components.ts";
import { jsonSchema, schemaRef } from "./json-schemas.ts";
import { PAGINATION_CURSOR, pageParameters, parameter, partialPage, SEARCH } from "./list-operations.ts";
import { commonHeaders, json, serverErrors } from "./parts.ts";
import type { Operation, Parameter } from "./types.ts";

/** Routes for the people who run an application. */

const SERVER_ROUTE = { anyOrigin: false };
const EVENT_ID = "evt_01kfz3m8q0abcdefghjkmnpqrs";

const stateParameter = (states: readonly string[]): Parameter => ({
  name: "state",
  in: "query",
  description: "Only those in this state. Absent: all.",
  required: false,
  schema: { type: "string", enum: [...states] },
});

export const getApplication = (): Operation => ({
  operationId: "getApplication",
  tags: ["Overview"],
  summary: "Read the application's settings",
  description: "What an administrator set up. With a console secret, `signedIn` says whose it is and what it may do.",
  security: BY_SERVER,
  parameters: credentialParameters(BY_SERVER),
  responses: {
    "200": {
      description: "The application.",
      headers: commonHeaders(SERVER_ROUTE),
      content: json(schemaRef("Application"), {
        "An application": {
          applicationId: EXAMPLE_APPLICATION_ID,
          name: "Main Street 1",
          firstNumber: 1_000_000_000,
          lastNumber: 1_009_999_999,
          requireSecret: true,
          requireProof: false,
          statusList: false,
          webhookUrl: null,
        },
        "With a console secret": {
          applicationId: EXAMPLE_APPLICATION_ID,
          name: "Main Street 1",
          firstNumber: 1_000_000_000,
          lastNumber: 1_009_999_999,
          requireSecret: true,
          requireProof: false,
          statusList: false,
          webhookUrl: null,
          invitationLink: "https://app.example.com/visit/{token}",
          signedIn: { name: "Ann Lee", role: "reception" },
        },
      }),
    },
    ...serverErrors(),
  },
});

const visitParameters = (): Parameter[] => {
  const { from, until, q } = invitationPageQuery.shape;
  return [
    parameter("from", "Only those whose visit ends after this time: ISO 8601 with a zone.", jsonSchema(from)),
    parameter("until", "Only those whose visit begins before this time: ISO 8601 with a zone.", jsonSchema(until)),
    parameter("q", SEARCH, jsonSchema(q)),
  ];
};

export const listInvitations = (): Operation => ({
  operationId: "listInvitations",
  tags: ["Overview"],
  summary: "List the application's invitations",
  description: `Newest first. With \`from\` or \`until\`, those whose visit touches that span, in the order in which visits begin. A visit begins at \`badgeStartsAt\`, or when the invitation was created; it ends with the badge or the invitation. Both times are the badge's if they were changed after the claim. All filters may be combined. ${partialPage("invitations")} Tokens are not listed, because the service has only their digests.`,
  security: BY_SERVER,
  parameters: [
    ...credentialParameters(BY_SERVER),
    stateParameter(INVITATION_STATES),
    ...visitParameters(),
    ...pageParameters(),
  ],
  responses: {
    "200": {
      description: "A page of invitations.",
      headers: { ...commonHeaders(SERVER_ROUTE), "pagination-cursor": PAGINATION_CURSOR },
      content: json(schemaRef("InvitationPage"), {
        "Two invitations": {
          invitations: [
            {
              badgeId: EXAMPLE_BADGE,
              state: "pending",
              createdAt: "2027-01-15T08:00:00.500Z",
              expiresAt: "2027-01-22T18:00:00+01:00",
            },
            {
              badgeId: EXAMPLE_OTHER_BADGE,
              state: "claimed",
              createdAt: "2027-01-14T08:00:00.500Z",
              expiresAt: "2027-01-21T18:00:00+01:00",
              badgeExpiresAt: "2027-01-22T00:00:00+01:00",
              name: "Ann Lee",
              userId: "alice",
            },
          ],
        },
      }),
    },
    ...serverErrors("INVALID_STATE", "INVALID_NAME", "INVALID_EXPIRESAT", "INVALID_PER_PAGE", "INVALID_CURSOR"),
  },
});

export const listAccess = (): Operation => ({
  operationId: "listAccess",
  tags: ["Overview"],
  summary: "List the people with a console secret",
  description:
    "Sorted by name, with each person's role and when the secret was created. Only the application's server and operators may call it: a secret of another role gets 403 `READ_ONLY`.",
  security: BY_SERVER,
  parameters: [...credentialParameters(BY_SERVER), ...pageParameters()],
  responses: {
    "200": {
      description: "A page of people.",
      headers: { ...commonHeaders(SERVER_ROUTE), "pagination-cursor": PAGINATION_CURSOR },
      content: json(schemaRef("AccessPage"), {
        "Two people": {
          people: [
            { name: "Ann Lee", role: "operator", createdAt: "2027-01-15T08:00:00.500Z" },
            { name: "Reception", role: "reception", createdAt: "2027-01-15T08:30:00.500Z" },
          ],
        },
      }),
    },
    ...serverErrors("READ_ONLY", "INVALID_PER_PAGE", "INVALID_CURSOR"),
  },
});

export const listEvents = (): Operation => ({
  operationId: "listEvents",
  tags: ["Overview"],
  summary: "List the application's webhook events",
  description: `Newest first, with the outcome of the last attempt and the time of the next one. Delivered events are deleted after a month, unless an administrator has set another period. ${partialPage("events")}`,
  security: BY_SERVER,
  parameters: [...credentialParameters(BY_SERVER), stateParameter(EVENT_STATES), ...pageParameters()],
  responses: {
    "200": {
      description: "A page of events.",
      headers: { ...commonHeaders(SERVER_ROUTE), "pagination-cursor": PAGINATION_CURSOR },
      content: json(schemaRef("EventPage"), {
        "A delivered event": {
          events: [
            {
              id: EVENT_ID,
              event: "badge:created",
              state: "delivered",
              attempts: 1,
              lastStatus: 204,
              lastOutcome: "answered",
              lastResponse: "",
              createdAt: "2027-01-15T08:00:00.500Z",
              nextAttemptAt: null,
              deliveredAt: "2027-01-15T08:00:01.000Z",
              data: { id: EXAMPLE_BADGE, userId: "alice" },
            },
          ],
        },
      }),
    },
    ...serverErrors("INVALID_PER_PAGE", "INVALID_CURSOR", "INVALID_STATE"),
  },
});

export const replayEvent = (): Operation => ({
  operationId: "replayEvent",
  tags: ["Overview"],
  summary: "Send an event again",
  description:
    "Sends at once, also an event that waits for its next attempt or was delivered before: the receiver recognizes it by its ID. Without a URL, or while the endpoint is held, its state is `held`, and it is sent when the endpoint is released.",
  security: BY_SERVER,
  parameters: [
    ...credentialParameters(BY_SERVER),
    {
      name: "id",
      in: "path",
      description: "The event's ID.",
      required: true,
      schema: { type: "string", minLength: 1 },
      example: EVENT_ID,
    },
    ACTOR_PARAMETER,
  ],
  responses: {
    "202": {
      description: "The event will be sent.",
      headers: commonHeaders(SERVER_ROUTE),
      content: json(schemaRef("ReplayedEvent"), {
        "At once": { id: EVENT_ID, state: "pending" },
        "When the endpoint is released": { id: EVENT_ID, state: "held" },
      }),
    },
    ...serverErrors("READ_ONLY", "UNKNOWN_EVENT", "PAYLOAD_TOO_LARGE"),
  },
});

const historyParameters = (): Parameter[] => {
  const { since, until, actor, action } = historyPageQuery.shape;
  return [
    parameter("since", "Only what was done at this time or later: ISO 8601 with a zone.", jsonSchema(since)),
    parameter("until", "Only what was done before this time: ISO 8601 with a zone.", jsonSchema(until)),
    parameter("actor", "Only what an actor with exactly this name did, of any kind.", jsonSchema(actor)),
    parameter("action", "Only this action.", jsonSchema(action)),
  ];
};

export const listHistory = (): Operation => ({
  operationId: "listHistory",
  tags: ["Overview"],
  summary: "List the history: who did what",
  description: `Lists every change of badges, invitations, blocks, settings, secrets and keys, newest first. A badge that a device got without an invitation has no entry: see its \`issuedAt\`. Logins and signatures are not recorded. Entries are deleted after about a year, unless an administrator has set another time. No call can write, change or delete one; erasing a user takes the user out of all of them. All filters may be combined. ${partialPage("entries")}`,
  security: BY_SERVER,
  parameters: [
    ...credentialParameters(BY_SERVER),
    {
      name: "badge",
      in: "query",
      description: "Only what concerns the badge of this number.",
      required: false,
      schema: { type: "string" },
      example: EXAMPLE_BADGE,
    },
    {
      name: "user",
      in: "query",
      description: "Only what concerns this user.",
      required: false,
      schema: { type: "string" },
      example: "alice",
    },
    ...historyParameters(),
    ...pageParameters(),
  ],
  responses: {
    "200": {
      description: "A page of the history.",
      headers: { ...commonHeaders(SERVER_ROUTE), "pagination-cursor": PAGINATION_CURSOR },
      content: json(schemaRef("HistoryPage"), {
        "A badge that was suspended": {
          history: [
            {
              at: "2027-01-16T09:30:00.000Z",
              action: "badge:suspended",
              actor: { kind: "person", name: "Ann Lee" },
              badgeId: EXAMPLE_BADGE,
              userId: "alice",
              requestId: EXAMPLE_REQUEST_ID,
              reason: "Lost his phone",
            },
          ],
        },
      }),
    },
    ...serverErrors(
      ...(["UNKNOWN_BADGE", "INVALID_USERID", "INVALID_EXPIRESAT", "INVALID_STATE"] as const),
      ...(["INVALID_PER_PAGE", "INVALID_CURSOR"] as const),
    ),
  },
});

const values = (value: string) => ({ values: [{ value, badges: 7 }], others: 0 });

export const getStatistics = (): Operation => ({
  operationId: "getStatistics",
  tags: ["Overview"],
  summary: "Read the application's statistics",
  description:
    "Numbers left, badges by device, state and day, invitations by state, deliveries by outcome, as of the call (`asOf`). Devices are counted among the newest badges, and deliveries up to a limit.",
  security: BY_SERVER,
  parameters: credentialParameters(BY_SERVER),
  responses: {
    "200": {
      description: "The statistics.",
      headers: commonHeaders(SERVER_ROUTE),
      content: json(schemaRef("Statistics"), {
        "An application with seven badges": {
          applicationId: EXAMPLE_APPLICATION_ID,
          name: "Main Street 1",
          numbers: {
            size: 1000,
            issued: 7,
            reserved: 1,
            retired: 0,
            coolingDown: 0,
            left: 992,
            used: 8,
            usedPercent: 0.8,
          },
          badges: {
            deviceModel: values("Pixel 9"),
            os: values("Android"),
            osVersion: values("16"),
            sdkVersion: values("4.2.0"),
          },
          sampled: 7,
          invitations: { pending: 1, claimed: 2, revoked: 0, expired: 0 },
          badgesByState: { active: 6, suspended: 1, revoked: 0, expired: 0, replaced: 0 },
          badgesPerDay: [{ day: "2027-01-15", badges: 7 }],
          deliveries: [{ state: "delivered", outcome: "answered", events: 7 }],
          logins: { withToken: 0, withoutToken: 0, withWrongToken: 0 },
          asOf: "2027-01-15T08:00:00.500Z",
        },
      }),
    },
    ...serverErrors(),
  },
});
