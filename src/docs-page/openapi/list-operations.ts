import { EXAMPLE_BADGE, EXAMPLE_METADATA, EXAMPLE_OTHER_BADGE } from "../../shared/examples.ts";
import { DEFAULT_PER_PAGE, MAX_PER_PAGE, MAX_ROWS_PER_ITEM, MAX_ROWS_PER_PAGE } from "../../shared/limits.ts";
import { badgePageQuery, pageQuery } from "../../shared/requests.ts";
import { BY_SERVER, credentialParameters } from "./components.ts";
import { jsonSchema, schemaRef } from "./json-schemas.ts";
import { commonHeaders, errorResponses, json } from "./parts.ts";
import type { Header, Json, Operation, Parameter, ResponseObject } from "./types.ts";

/** Routes with which an application's server pages its badges. */

const SERVER_ROUTE = { anyOrigin: false };
const CURSOR = "YWZ0ZXI6MTAw";

export const pageParameters = (): Parameter[] => [
  {
    name: "per_page",
    in: "query",
    description: `Items on a page, at most. More than ${MAX_PER_PAGE} counts as ${MAX_PER_PAGE}.`,
    required: false,
    schema: { ...jsonSchema(pageQuery.shape.per_page), default: DEFAULT_PER_PAGE },
    example: 250,
  },
  {
    name: "cursor",
    in: "query",
    // No example: pages that let one try a call would send it.
    description: `Where the page starts: the \`pagination-cursor\` header of the page before, such as \`${CURSOR}\`. Absent: the first page.`,
    required: false,
    schema: jsonSchema(pageQuery.shape.cursor),
  },
];

export const PAGINATION_CURSOR: Header = {
  description: "Where the next page starts. Present exactly when more follow.",
  required: false,
  schema: { type: "string", pattern: "^[\\w-]+$" },
  example: CURSOR,
};

const FILTERS: Parameter[] = [
  {
    name: "state",
    in: "query",
    description: "Only badges in this state. Absent: active and suspended ones.",
    required: false,
    schema: jsonSchema(badgePageQuery.shape.state),
  },
  {
    name: "q",
    in: "query",
    description: "Only badges whose user ID or name has this text in it, in any case.",
    required: false,
    schema: jsonSchema(badgePageQuery.shape.q),
  },
  {
    name: "endsBefore",
    in: "query",
    description: "Only badges that end before this time, ISO 8601 with a zone, percent-encoded.",
    required: false,
    schema: jsonSchema(badgePageQuery.shape.endsBefore),
  },
  {
    name: "order",
    in: "query",
    description: "`newest`: newest first. Absent: oldest first.",
    required: false,
    schema: jsonSchema(badgePageQuery.shape.order),
  },
];

const FILTERING = `With \`state\`, \`q\`, \`endsBefore\` or \`order\`, items also have \`issuedAt\` and \`changedAt\`, and \`state\` unless they are active. A page looks at ${MAX_ROWS_PER_ITEM} times as many badges as fit on it and ${MAX_ROWS_PER_PAGE} besides, at most, so it may have few items, or none, and still a cursor: go on. A cursor goes with the filters and the order of its own page.`;

const PAGING = `To read all, call without \`cursor\`, then again with each \`pagination-cursor\` header as \`cursor\` until a response has none. A badge that exists when you start appears exactly once, no matter what is issued meanwhile; new badges come last. A cursor is opaque text, safe in a URL. Every page costs the same, regardless of its position and of the number of badges.`;

export const listBadges = (): Operation => ({
  operationId: "listBadges",
  tags: ["Badges"],
  summary: "Page all badges of the application",
  description: `Oldest first: the badges that are active or suspended, not reservations, and not badges that were revoked, replaced or have expired. An item has \`state\` only while it is suspended, and \`expiresAt\` only if it has an end. \`GET /v1/badges/{id}\` shows a badge in any state. To keep a copy up to date, follow \`GET /v1/changes\` instead: it has only what changed.

${FILTERING}

${PAGING}`,
  security: BY_SERVER,
  parameters: [...credentialParameters(BY_SERVER), ...FILTERS, ...pageParameters()],
  responses: {
    "200": pageResponse({
      "A page": [
        { id: EXAMPLE_BADGE, userId: "alice", metadata: EXAMPLE_METADATA },
        { id: EXAMPLE_OTHER_BADGE, userId: "bob" },
      ],
      "A suspended badge, and one with an end": [
        { id: EXAMPLE_BADGE, userId: "alice", metadata: EXAMPLE_METADATA, state: "suspended" },
        { id: EXAMPLE_OTHER_BADGE, userId: "bob", expiresAt: "2027-01-22T23:00:00.000Z" },
      ],
      "No badges": [],
    }),
    ...errorResponses(SERVER_ROUTE, [
      "INVALID_CREDENTIALS",
      "INVALID_PER_PAGE",
      "INVALID_CURSOR",
      "INVALID_STATE",
      "INVALID_NAME",
      "INVALID_EXPIRESAT",
      "RATE_LIMITED",
      "UNAVAILABLE",
    ]),
  },
});

export const listUserBadges = (): Operation => ({
  operationId: "listUserBadges",
  tags: ["Badges"],
  summary: "Page the badges of one user",
  description: `The application's server calls this to see on which devices a user has badges: one for each user device, in the order they were issued, active and suspended ones. An unknown user has none: 200 with an empty list, because the service knows users only by their badges.

${PAGING}`,
  security: BY_SERVER,
  parameters: [
    ...credentialParameters(BY_SERVER),
    {
      name: "id",
      in: "path",
      description:
        "The application's user ID, percent-encoded (`a/b` is `a%2Fb`). `.` and `..` are no user IDs: every HTTP client resolves them in a path, so `/v1/users/../badges` is `/v1/badges` before it is sent.",
      required: true,
      schema: { type: "string", minLength: 1 },
      example: "alice",
    },
    ...pageParameters(),
  ],
  responses: {
    "200": pageResponse({
      "Two devices": [
        { id: EXAMPLE_BADGE, userId: "alice", metadata: EXAMPLE_METADATA },
        { id: EXAMPLE_OTHER_BADGE, userId: "alice" },
      ],
      "A user without badges": [],
    }),
    ...errorResponses(SERVER_ROUTE, [
      "INVALID_CREDENTIALS",
      "INVALID_PER_PAGE",
      "INVALID_CURSOR",
      "RATE_LIMITED",
      "UNAVAILABLE",
    ]),
  },
});

/** @param pages summary to badges */
function pageResponse(pages: Record<string, Json[]>): ResponseObject {
  const examples = Object.entries(pages).map(([summary, badges]) => [summary, { badges }]);
  return {
    description: "A page of badges.",
    headers: { ...commonHeaders(SERVER_ROUTE), "pagination-cursor": PAGINATION_CURSOR },
    content: json(schemaRef("BadgePage"), Object.fromEntries(examples)),
  };
}
